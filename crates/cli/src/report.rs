//! `lastbyte report`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::draft::{Draft, cannot_write};
use super::{Failure, print};
use lastbyte::report::study::{FigureFiles, Findings, figures, page, share};
use lastbyte::results::{Dataset, file_name};
use lastbyte::study::Study;

/// Makes one page of a run: the answer, figures, published numbers and claims beside ours, and every
/// number. The page needs no network.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// A folder of `lastbyte run`, complete or not
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where to write the page [default: report.html in DIR]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Write each figure into this folder, too: its drawing and a 16:9 slide as SVG, and as PNG if that is built in,
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
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.folder.is_file() {
            return Err(Failure::Usage(format!(
                "report takes a folder of `lastbyte run`, and {:?} is a file: measure with `lastbyte run STUDY.toml -o \
                 DIR`, then `lastbyte report DIR`",
                self.folder
            )));
        }
        let findings = Findings::read(&Dataset::open(&self.folder)?)?;
        let findings = match &self.study {
            None => findings,
            Some(path) => {
                let study = Study::load(path).map_err(Failure::usage)?;
                findings.drawn_by(study).map_err(Failure::Usage)?
            }
        };
        let path = match &self.output {
            Some(path) => path.clone(),
            None => self.folder.join("report.html"),
        };
        if let Some(url) = &self.url {
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return Err(Failure::Usage(format!(
                    "--url {url:?} is no address of a page: write one such as https://example.com/report.html"
                )));
            }
            let picture = share(&findings).map_err(Failure::Machine)?.ok_or_else(|| {
                Failure::Machine(
                    "this lastbyte draws no PNG, which previews need: build it with `--features png`".to_owned(),
                )
            })?;
            write(&path.with_extension("png"), &picture)?;
        }
        write(&path, page(&findings, self.url.as_deref()).as_bytes())?;
        print(&format!("{}\n", path.display()))?;
        if let Some(folder) = &self.figures {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
            for FigureFiles { id, drawings, csv } in figures(&findings).map_err(Failure::Machine)? {
                let name = file_name(&id);
                write(&folder.join(format!("{name}.csv")), csv.as_bytes())?;
                for (what, drawing) in drawings {
                    write(
                        &folder.join(format!("{name}{what}.svg")),
                        drawing.svg.as_bytes(),
                    )?;
                    if let Some(png) = drawing.png {
                        write(&folder.join(format!("{name}{what}.png")), &png)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    Draft::new(path)?.write(|out| out.write_all(content))
}
