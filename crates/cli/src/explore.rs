//! `lastbyte explore`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::draft::{Draft, page_path};
use super::{Failure, print, tell};
use lastbyte::report::explore::{Probe, page};

#[derive(Debug, Args)]
pub(super) struct Explore {
    /// What was seen of a server, as docs/explore.md has it: the page begins with that
    #[arg(value_name = "PROBE.json")]
    probe: Option<PathBuf>,
    /// Where the page goes
    #[arg(short, long, value_name = "FILE.html", default_value = "explore.html", value_parser = page_path)]
    output: PathBuf,
}

impl Explore {
    pub(super) fn run(self) -> Result<(), Failure> {
        let probe = self.probe.as_ref().map(|path| {
            /// As `lastbyte probe --from` takes it.
            const MOST: u64 = 4 << 20;
            let wrong = |why: String| Failure::Usage(format!("\"{}\": {why}", path.display()));
            let text =
                lastbyte_files::read_text(path, MOST).map_err(|why| wrong(why.to_string()))?;
            Probe::read(&text).map_err(|problem| wrong(problem.to_string()))
        });
        let probe = probe.transpose()?;
        for note in probe.iter().flat_map(|probe| &probe.notes) {
            tell(format_args!("{note}"));
        }
        let page = page(probe.as_ref()).map_err(Failure::usage)?;
        let others: Vec<_> = self.probe.iter().map(PathBuf::as_path).collect();
        Draft::beside(&self.output, &others)?.write(|out| out.write_all(page.as_bytes()))?;
        print(&format!("{}\n", super::shown(&self.output)))
    }
}
