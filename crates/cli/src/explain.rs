//! `lastbyte explain`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::draft::Draft;
use super::options::Network;
use super::{Failure, print, screen};
use lastbyte::explain::{check, explain};
use lastbyte::report;
use lastbyte::study::Arm;

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// What to explain: GROUP/CHAIN[:BYTESB][/KEY=VALUE...], as `compare` takes it
    #[arg(value_name = "ARM", required = true)]
    arms: Vec<Arm>,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
    /// Draw the flights of each arm, on the first of the networks with a response, into this file besides
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Explain {
    pub(super) fn run(self) -> Result<(), Failure> {
        let cells = self.network.cells().map_err(Failure::Usage)?;
        cells.iter().try_for_each(check).map_err(Failure::Usage)?;
        let explained = self.arms.iter().map(|arm| explain(arm, &cells));
        let explained: Vec<_> = explained
            .collect::<Result<_, _>>()
            .map_err(Failure::usage)?;
        if let Some(path) = &self.svg {
            let drawing = report::explanation_svg(&explained);
            if path.extension().is_none_or(|extension| extension != "svg") {
                return Err(Failure::Usage(format!(
                    "can't write {path:?}: name it .svg"
                )));
            }
            Draft::new(path)?.write(|out| out.write_all(drawing.as_bytes()))?;
        }
        print(&match self.format {
            Format::Text => report::explanation(&explained, screen()),
            Format::Json => report::explanation_json(&explained),
        })
    }
}
