//! How programs are looked for, and what they are asked.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use lastbyte_sizes::{Group, KeyAlgorithm};

use super::PageError;
use crate::lab::process::installed;
use crate::study::{Arm, ArmChain};

/// Names another browser than the one that is installed.
const BROWSER_VARIABLE: &str = "LASTBYTE_CHROMIUM";
/// Where Debian has the program that its `chromium`, a script, starts. A guest has no scripts.
const BROWSER: &str = "/usr/lib/chromium/chromium";

/// What of an arm is newer than some TLS.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    /// The group, if it has ML-KEM.
    pub(super) ml_kem: Option<Group>,
    pub(super) ml_dsa: bool,
}

impl Needs {
    pub(super) fn of(arm: &Arm) -> Needs {
        let is_ml_dsa = |key: KeyAlgorithm| key.name().starts_with("ml-dsa");
        Needs {
            ml_kem: Some(arm.group).filter(|group| group.name().contains("MLKEM")),
            ml_dsa: match &arm.chain {
                ArmChain::Made(spec) => [spec.leaf, spec.ca].into_iter().any(is_ml_dsa),
                ArmChain::Pem(_) => false,
            },
        }
    }

    pub(super) fn newest(self) -> Option<&'static str> {
        match (self.ml_dsa, self.ml_kem) {
            (true, _) => Some("ML-DSA"),
            (false, group) => group.map(Group::name),
        }
    }
}

/// The browser that there is.
pub(super) fn chromium() -> Result<PathBuf, PageError> {
    let browser = match env::var_os(BROWSER_VARIABLE) {
        Some(named) if !named.is_empty() => PathBuf::from(named),
        _ => PathBuf::from(BROWSER),
    };
    if browser.exists() {
        Ok(browser)
    } else {
        Err(PageError::NoBrowser(browser))
    }
}

/// A program that a variable names, or else that is in the cache, or else that is installed.
pub(super) fn chosen(variable: &str, cached: Option<PathBuf>, program: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).filter(|named| !named.is_empty());
    if let Some(named) = named.map(PathBuf::from) {
        return named.exists().then_some(named);
    }
    let on_path = || {
        let path = env::var_os("PATH")?;
        let mut places = env::split_paths(&path).map(|place| place.join(program));
        places.find(|place| place.exists())
    };
    (cached.filter(|cached| cached.exists()))
        .or_else(on_path)
        .or_else(|| installed(program))
}

/// The first line that a program prints, if it runs.
pub(super) fn first_line(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned())
}

/// `156.0` of `Chromium 156.0.8078.79 built on Debian`.
pub(super) fn first_number(text: &str) -> Option<[u32; 2]> {
    let mut parts = text
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .splitn(3, |c: char| !c.is_ascii_digit());
    Some([
        parts.next()?.parse().ok()?,
        parts.next().and_then(|part| part.parse().ok()).unwrap_or(0),
    ])
}

pub(super) fn first_whole(text: &str) -> Option<u32> {
    first_number(text).map(|[number, _]| number)
}

#[cfg(test)]
mod tests {
    use super::first_number;

    #[test]
    fn versions_are_read() {
        assert_eq!(first_number("Chromium 156.0.8078.79 built"), Some([156, 0]));
        assert_eq!(first_number("3.5.7"), Some([3, 5]));
        assert_eq!(first_number("v24.19.0 (OpenSSL 3.5.7)"), Some([24, 19]));
        assert_eq!(first_number("27.3 linux/amd64"), Some([27, 3]));
        assert_eq!(first_number("9"), Some([9, 0]));
        assert_eq!(first_number("none"), None);
    }
}
