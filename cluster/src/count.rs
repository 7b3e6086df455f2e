//! `lastbyte-sql count`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ballista_core::extension::SessionStateExt;
use clap::Args;
use datafusion::execution::SessionState;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

use crate::Failure;
use crate::counts::Counts;

#[derive(Debug, Args)]
pub(crate) struct Count {
    /// Folders of Parquet, together one table. A cluster has to have them at the same paths
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// Count on a cluster, rather than in this process
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: Option<String>,
    /// Fail if this document of `lastbyte zeek --format json` has other counts
    #[arg(long, value_name = "FILE")]
    same_as: Option<PathBuf>,
}

impl Count {
    /// Prints the counts as JSON.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let context = self.context()?;
        let connections = context
            .read_parquet(self.paths()?, ParquetReadOptions::default())
            .await?;
        context.register_table("connections", connections.into_view())?;
        let counts = Counts::of(&context).await?;
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&counts)?)?;
        match &self.same_as {
            None => Ok(()),
            Some(document) => compare(counts, document),
        }
    }

    fn context(&self) -> Result<SessionContext, Failure> {
        let Some(scheduler) = &self.scheduler else {
            return Ok(SessionContext::new());
        };
        let state = SessionState::new_ballista_state(format!("http://{scheduler}"))?;
        Ok(SessionContext::new_with_state(state))
    }

    /// From the root, as others on the cluster know no folder of this process.
    fn paths(&self) -> Result<Vec<String>, Failure> {
        self.folders.iter().map(|folder| path(folder)).collect()
    }
}

fn path(folder: &Path) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::from(format!("{}: {why}", folder.display()));
    let path = fs::canonicalize(folder).map_err(|error| wrong(&error.to_string()))?;
    let mut files = fs::read_dir(&path).map_err(|error| wrong(&error.to_string()))?;
    let is_parquet = |path: PathBuf| path.extension().is_some_and(|end| end == "parquet");
    if !files.any(|file| file.is_ok_and(|file| is_parquet(file.path()))) {
        return Err(wrong(
            "it has no Parquet: name what `lastbyte zeek --parquet` wrote",
        ));
    }
    let path = path.into_os_string().into_string();
    path.map_err(|_| wrong("its name is not UTF-8"))
}

fn compare(counts: Counts, document: &Path) -> Result<(), Failure> {
    let wrong = |error: String| Failure::from(format!("{}: {error}", document.display()));
    let text = fs::read_to_string(document).map_err(|error| wrong(error.to_string()))?;
    let expected: Counts = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let expected = expected.without_zeros();
    if counts.without_zeros() == expected {
        return Ok(());
    }
    let expected = serde_json::to_string_pretty(&expected)?;
    Err(wrong(format!("its counts differ from SQL's: {expected}")))
}
