//! `lastbyte completions` and `lastbyte man`: what the command line tells of itself to shells and to man.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::draft::cannot_write;
use super::{Cli, Failure, print_document};

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct Manual {
    /// The command that the page is of; of lastbyte itself, if none is named
    command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "command")]
    output: Option<PathBuf>,
}

impl Completions {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        let mut command = Cli::command();
        let name = command.get_name().to_owned();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        print_document(&String::from_utf8_lossy(&script))
    }
}

impl Manual {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match &self.output {
            Some(folder) => fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
                .map_err(|error| cannot_write(folder, error)),
            None => print_document(&self.page()?),
        }
    }

    fn page(&self) -> Result<String, Failure> {
        let mut command = Cli::command();
        command.build();
        let mut of = &command;
        for name in &self.command {
            let unknown = || {
                let known = of.get_subcommands().map(clap::Command::get_name);
                let hint = lastbyte_link::nearest(name, known);
                Failure::usage(format!("no command {name:?}: {hint}"))
            };
            of = of.find_subcommand(name).ok_or_else(unknown)?;
        }
        let mut page = Vec::new();
        let written = Man::new(of.clone()).render(&mut page);
        written.map_err(Failure::run)?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }
}
