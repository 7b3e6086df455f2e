//! `lastbyte kernel fetch` and `lastbyte kernel pack`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use lastbyte::kernel::{self, Cache, Digest, Kernel, Packed, Size, Taken};
use lastbyte_ad::client::{Addresses, Connector, Settings};
use lastbyte_ad::dns::Client;
use lastbyte_ad::download::{DownloadError, Limits, download};
use lastbyte_ad::http::Url;

use super::super::ad::{block_on, duration};
use super::super::compare::interrupt;
use super::super::draft::Draft;
use super::super::{Failure, print};

/// What a file's digest is called, beside it: for `sha256sum --check`.
const SUFFIX: &str = ".sha256";

/// Takes a kernel that was built elsewhere: a file that `lastbyte kernel pack` wrote, if it has the digest
/// that is expected, and fits this version of Lastbyte and this processor.
///
/// A kernel is a program: whoever measures with it runs it with their own rights, less the network. Lastbyte knows the digests
/// of its releases' kernels. That of any other has to come from somebody whom you trust, by another way than the file: a
/// FILE.sha256 beside it comes from whoever made the file.
#[derive(Debug, Args)]
pub(in super::super) struct Fetch {
    /// The file, or https://HOST[:PORT]/PATH
    #[arg(value_name = "FILE|URL")]
    from: Place,
    /// The file's SHA-256, from somebody whom you trust; needed for all but the kernels of releases
    #[arg(long, value_name = "HEX")]
    sha256: Option<Digest>,
    /// What a download may take, from asking for an address to the last byte
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = duration)]
    timeout: Duration,
}

/// Writes the kernel that fits this version of Lastbyte to FILE, and its SHA-256 to FILE.sha256. The same kernel
/// makes the same bytes.
#[derive(Debug, Args)]
pub(in super::super) struct Pack {
    /// Where it goes: lastbyte-kernel.tar.gz, for instance
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Where a packed kernel is.
#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    Url(Url),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if text.contains("://") {
            (text.parse().map(Place::Url)).map_err(|error| format!("{error}"))
        } else {
            Ok(Place::File(text.into()))
        }
    }
}

impl Fetch {
    pub(in super::super) fn run(self, cache: &Cache) -> Result<(), Failure> {
        let source: &dyn Source = match &self.from {
            Place::File(path) => path,
            Place::Url(url) => &Remote::new(url, self.timeout)?,
        };
        let name = source.name();
        let bytes = source.read(Packed::LARGEST)?;
        let found = Digest::of(&bytes);
        let refuse = |problem| Failure::Usage(format!("{name:?} {problem}"));
        match self.sha256 {
            Some(expected) if found != expected => {
                return Err(refuse(format!(
                    "is incomplete or another file: its SHA-256 is {found} instead of {expected}"
                )));
            }
            None if !kernel::is_released(&found) => {
                return Err(refuse(
                    "is not a whole kernel of a release, and nobody vouches for it: give the SHA-256 that somebody whom you \
                     trust has told you, with --sha256"
                        .to_owned(),
                ));
            }
            Some(_) | None => {}
        }
        let packed = Packed::read(&bytes).map_err(|problem| refuse(problem.to_string()))?;
        // Until here, Ctrl-C leaves nothing behind; what follows takes a moment.
        interrupt().map_err(Failure::run)?;
        print(&match packed.take(Path::new(&name), cache)? {
            Taken::New(Kernel { path, info, .. }) => {
                format!(
                    "Linux {} is there now: {}\n",
                    info.version,
                    crate::shown(&path)
                )
            }
            Taken::AlreadyThere(Kernel { path, info, .. }) => format!(
                "Linux {} was there already: {}\n",
                info.version,
                path.display()
            ),
        })
    }
}

impl Pack {
    pub(in super::super) fn run(self) -> Result<(), Failure> {
        let packed = Packed::of(&kernel::require()?)?;
        let bytes = packed.write().map_err(Failure::run)?;
        let beside = beside(&self.file, SUFFIX);
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let digest = Digest::of(&bytes);
        let file = Draft::new(&self.file)?;
        let digest_file = Draft::beside(&beside, &[&self.file])?;
        file.write(|file| file.write_all(&bytes))?;
        digest_file.write(|file| writeln!(file, "{digest}  {name}"))?;
        print(&format!(
            "{}: {}, sha256 {digest}\n",
            self.file.display(),
            Size(bytes.len() as u64)
        ))
    }
}

/// Where a file comes from.
trait Source {
    fn name(&self) -> String;

    /// The file, unless it has more bytes.
    fn read(&self, most: usize) -> Result<Vec<u8>, Failure>;
}

impl Source for PathBuf {
    fn name(&self) -> String {
        self.display().to_string()
    }

    fn read(&self, most: usize) -> Result<Vec<u8>, Failure> {
        let refuse = |problem: String| Failure::Usage(format!("{self:?} {problem}"));
        let read = || {
            let file = File::open(self)?;
            // Nobody waits for a pipe.
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is no file"));
            }
            let mut bytes = Vec::new();
            file.take(most as u64 + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| refuse(format!("can't be read: {error}")))?;
        if bytes.len() > most {
            Err(refuse(format!(
                "is too large: it has more than {most} bytes"
            )))
        } else {
            Ok(bytes)
        }
    }
}

/// A server, of which only https is asked, and whose certificate one of the system's CAs must have issued.
struct Remote<'a> {
    url: &'a Url,
    connector: Connector,
    timeout: Duration,
}

impl<'a> Remote<'a> {
    fn new(url: &'a Url, timeout: Duration) -> Result<Self, Failure> {
        // Nobody is asked for records.
        let dns = Client::new([]);
        let settings = Settings {
            addresses: Addresses::System,
            patience: timeout,
            ..Settings::default()
        };
        // Sockets need a runtime, which begins where they are.
        let connector = block_on(async { Connector::new(Arc::new(dns), settings) })??;
        Ok(Remote {
            url,
            connector,
            timeout,
        })
    }
}

impl Source for Remote<'_> {
    fn name(&self) -> String {
        self.url.to_string()
    }

    fn read(&self, most: usize) -> Result<Vec<u8>, Failure> {
        let limits = Limits {
            time: self.timeout,
            bytes: most,
        };
        Ok(block_on(download(&self.connector, self.url, limits))??)
    }
}

impl From<DownloadError> for Failure {
    fn from(error: DownloadError) -> Failure {
        match error {
            DownloadError::Fetch(error) => error.into(),
            _ => Failure::run(error),
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
