//! `lastbyte report`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::draft::{Draft, cannot_write};
use super::{Failure, print};
use lastbyte::report::study::{FigureFiles, Findings, figures, page};
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
    /// Write each figure into this folder, too, as SVG, and as PNG if that is built in
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
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
        write(&path, page(&findings).as_bytes())?;
        print(&format!("{}\n", path.display()))?;
        if let Some(folder) = &self.figures {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
            for FigureFiles { id, svg, png } in figures(&findings).map_err(Failure::Machine)? {
                let name = file_name(&id);
                write(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
                if let Some(png) = png {
                    write(&folder.join(format!("{name}.png")), &png)?;
                }
            }
        }
        Ok(())
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    Draft::new(path)?.write(|out| out.write_all(content))
}
