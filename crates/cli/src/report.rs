//! `lastbyte report`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::draft::{Draft, cannot_write, report_path};
use super::{Failure, loads, print, show, tell};
use lastbyte::lab::CAPTURES;
use lastbyte::report::study::{
    FigureFiles, Findings, SO_FAR, answer_json, answer_markdown, figures, page, share,
};
use lastbyte::results::{
    Dataset, FolderError, PAGES, Progress, SILENT, Saved, SavedError, file_name,
};
use lastbyte::study::Study;

/// Makes one page of what was measured: the answer, figures, published numbers and claims beside ours, and every
/// number. The page needs no network.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// A folder of `lastbyte run`, complete or not, or a file of `lastbyte compare --output FILE.parquet`
    #[arg(value_name = "DIR|FILE.parquet")]
    measured: PathBuf,
    /// Where to write the page [default: report.html in DIR, FILE.html beside FILE.parquet]; FILE.md and FILE.json
    /// have its question, its answer and, as Markdown, the table of what each configuration costs
    #[arg(short, long, value_name = "FILE.html|md|json", value_parser = report_path)]
    output: Option<PathBuf>,
    /// Write each figure into this folder, too: its drawing and a 16:9 slide as SVG, and as PNG and PDF if those are built in,
    /// and its numbers as CSV
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Where the page will stand: previews of links to it show its picture, which is written beside it as PNG
    #[arg(long, value_name = "https://…/NAME.html")]
    url: Option<String>,
    /// Draw what this version of the study describes; it must measure the same
    #[arg(long, value_name = "STUDY.toml")]
    study: Option<PathBuf>,
}

impl Report {
    /// What was measured, and where its page stands if nobody says.
    fn read(&self) -> Result<(Findings, PathBuf), Failure> {
        let path = &self.measured;
        let is_rows = path
            .extension()
            .is_some_and(|extension| extension == "parquet");
        if !path.exists() {
            return Err(Failure::Usage(format!(
                "{path:?} does not exist: name a folder of `lastbyte run`, or a file of `lastbyte compare --output \
                 FILE.parquet`"
            )));
        }
        match path.is_dir() {
            false if is_rows => Ok((saved(path)?, path.with_extension("html"))),
            false => Err(Failure::Usage(format!(
                "report takes a folder of `lastbyte run` or a file of `lastbyte compare --output FILE.parquet`, and \
                 {path:?} is another file"
            ))),
            true => {
                let mut findings = Findings::read(&Dataset::open(path)?)?;
                if findings.progress == Progress::SoFar {
                    tell(format_args!(
                        "warning: {path:?} is not a complete run: {SO_FAR}; end it with `lastbyte run --resume`, or gather it \
                         with its other shards"
                    ));
                }
                findings.inside = show::closest_of(&findings, &path.join(CAPTURES))?;
                findings.loads = loads::usual(&findings, &path.join(PAGES))?;
                Ok((findings, path.join("report.html")))
            }
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        let (findings, usual) = self.read()?;
        let findings = match &self.study {
            None => findings,
            Some(path) => {
                let study = Study::load(path).map_err(Failure::usage)?;
                findings.drawn_by(study).map_err(Failure::usage)?
            }
        };
        let findings = findings.titled();
        let path = match &self.output {
            Some(path) => path.clone(),
            None => usual,
        };
        if let Some(url) = &self.url {
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return Err(Failure::Usage(format!(
                    "--url {url:?} is no address of a page: write one such as https://example.com/report.html"
                )));
            }
            let picture = share(&findings).map_err(|error| Failure::Machine(error.to_string()))?.ok_or_else(|| {
                Failure::Machine(
                    "this lastbyte draws no PNG, which previews need: build it with `--features png`".to_owned(),
                )
            })?;
            write(&path.with_extension("png"), &picture)?;
        }
        // Before anything is written: whoever reads that this can't be has no page that says otherwise.
        if let Some(folder) = &self.figures {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
        }
        let told = match path.extension().and_then(|ending| ending.to_str()) {
            Some("md") => answer_markdown(&findings),
            Some("json") => answer_json(&findings),
            _ => page(&findings, self.url.as_deref()),
        };
        write(&path, told.as_bytes())?;
        print(&format!("{}\n", super::shown(&path)))?;
        if let Some(folder) = &self.figures {
            let (files, note) =
                figures(&findings).map_err(|error| Failure::Machine(error.to_string()))?;
            if let Some(note) = note {
                tell(format_args!("warning: {note}; figures are SVG alone"));
            }
            for FigureFiles { id, drawings, csv } in files {
                let name = file_name(&id);
                write(&folder.join(format!("{name}.csv")), csv.as_bytes())?;
                for (what, drawing) in drawings {
                    write(
                        &folder.join(format!("{name}{what}.svg")),
                        drawing.svg.as_bytes(),
                    )?;
                    for (ending, bytes) in drawing.others {
                        write(&folder.join(format!("{name}{what}.{ending}")), &bytes)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads the rows of `lastbyte compare`.
fn saved(path: &Path) -> Result<Findings, Failure> {
    let rows = Saved::open(path, "these").map_err(|error| match error {
        SavedError::Unreadable {
            error: FolderError::Content { problem, .. },
        } if problem == SILENT => {
            let folder = match path.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            };
            Failure::Usage(format!(
                "{path:?}: {SILENT}: name the folder of its run, {folder:?}"
            ))
        }
        SavedError::Unreadable {
            error: error @ FolderError::Io { .. },
        } => error.into(),
        SavedError::Unreadable { error } => Failure::Usage(format!(
            "{error}: measure it again with `lastbyte compare --output FILE.parquet`"
        )),
        error @ SavedError::Lacking { .. } => Failure::usage(error),
    })?;
    Ok(Findings::of(
        rows.experiment.clone(),
        rows.samples(),
        &rows.environment,
    ))
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    Draft::new(path)?.write(|out| out.write_all(content))
}
