//! `lastbyte zeek`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lastbyte_zeek::{
    CdnList, DEFAULT_CDN_LIST, Names, Options, ParquetFolder, SCRIPT, SQL, Survey, sources, survey,
};

use super::draft::{Draft, cannot_write};
use super::{Failure, print, print_document, print_json, tell};

#[derive(Debug, Args)]
pub(super) struct Zeek {
    /// ssl.log and conn.log, or folders with them: TSV or JSON, also in gzip or zstd; - is standard input
    #[arg(value_name = "LOG", required_unless_present_any = ["script", "sql", "cdn_list"])]
    logs: Vec<PathBuf>,
    /// Write what a study's population draws from (TOML)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
    /// Show the names of the N servers with most handshakes, and have names in Parquet
    #[arg(long, value_name = "N", default_value_t = 0)]
    servers: usize,
    /// What belongs to a CDN: names, suffixes and prefixes, one a line
    #[arg(long, value_name = "FILE")]
    cdn: Option<PathBuf>,
    /// How many connections may wait for their other rows at once, 100 bytes each
    #[arg(long, value_name = "N", default_value_t = lastbyte_zeek::JOIN_ROWS,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    join_rows: u32,
    /// Write connections as Parquet into an empty folder, without uids and names
    #[arg(long, value_name = "FOLDER")]
    parquet: Option<PathBuf>,
    /// Print a script for Zeek that logs RTTs and sizes of handshakes
    #[arg(long, exclusive = true)]
    script: bool,
    /// Print the SQL that counts the same in the Parquet
    #[arg(long, exclusive = true)]
    sql: bool,
    /// Print the list that --cdn replaces
    #[arg(long, exclusive = true)]
    cdn_list: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Zeek {
    pub(super) fn run(self) -> Result<(), Failure> {
        for (asked, text) in [
            (self.script, SCRIPT),
            (self.sql, SQL),
            (self.cdn_list, DEFAULT_CDN_LIST),
        ] {
            if asked {
                return print_document(text);
            }
        }
        let inputs = self.inputs();
        let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        let output = self.output.as_deref();
        let draft = output
            .map(|path| Draft::beside(path, &inputs))
            .transpose()?;
        let survey = self.survey()?;
        if let Some(draft) = draft {
            let profile = survey.profile().map_err(Failure::usage)?;
            draft.write(|out| out.write_all(profile.as_bytes()))?;
        }
        warn(&survey);
        match self.format {
            Format::Text => print(&lastbyte_zeek::text(&survey, self.servers)),
            Format::Json => print_json(&lastbyte_zeek::json(&survey, self.servers)),
        }
    }

    /// All files that are read, those of folders included.
    fn inputs(&self) -> Vec<PathBuf> {
        let within = |path: &PathBuf| {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let folders = self.logs.iter().chain(&self.cdn);
        folders
            .flat_map(|path| [vec![path.clone()], within(path)].concat())
            .collect()
    }

    fn survey(&self) -> Result<Survey, Failure> {
        let found = sources(&self.logs)
            .map_err(|(path, error)| Failure::Usage(format!("{}: {error}", path.display())))?;
        let options = Options {
            cdn: self.cdn_list()?,
            join_rows: self.join_rows,
            names: match self.servers {
                0 => Names::LeftOut,
                _ => Names::Kept,
            },
        };
        let failed = |folder: &Path, error| Failure::Run(format!("{}: {error}", folder.display()));
        let mut survey = match &self.parquet {
            None => survey(&found.sources, options, None).map_err(Failure::run)?,
            Some(folder) => {
                let mut parquet = ParquetFolder::new(folder, options.names)
                    .map_err(|error| cannot_write(folder, error))?;
                let survey = survey(&found.sources, options, Some(&mut parquet))
                    .map_err(|error| failed(folder, error))?;
                parquet.finish().map_err(|error| failed(folder, error))?;
                survey
            }
        };
        survey.told.extend(found.note());
        match survey.ssl.rows + survey.conn.rows + survey.ours.rows {
            0 => Err(Failure::Usage(nothing(&survey))),
            _ => Ok(survey),
        }
    }

    fn cdn_list(&self) -> Result<CdnList, Failure> {
        let Some(path) = &self.cdn else {
            return DEFAULT_CDN_LIST.parse().map_err(Failure::run);
        };
        /// More than all CDNs have names.
        const MOST: u64 = 64 << 20;
        let text = lastbyte_files::read_text(path, MOST);
        let text = text.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        let list = text.parse();
        list.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    }
}

/// Why there is nothing to tell.
fn nothing(survey: &Survey) -> String {
    let why = (survey.examples.first())
        .or(survey.broken.first())
        .or(survey.told.first());
    match why {
        Some(why) => format!("no row of ssl.log or conn.log could be read: {why}"),
        None => "no row of ssl.log or conn.log could be read: there is no file to read".to_owned(),
    }
}

/// What has to be known of the numbers.
fn warn(survey: &Survey) {
    for warning in survey.broken.iter().cloned().chain(survey.warnings()) {
        tell(format_args!("warning: {warning}"));
    }
}
