//! What the guest kernel is made of, apart from the source.

use std::fmt;
use std::str::FromStr;

use super::digest::sha256;

/// Counts the changes of how `build.rs` makes a kernel that change the kernel.
const VERSION: u32 = 1;

/// A series of Linux: the versions that one set of patches is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    /// `6` of 6.12.
    pub major: u32,
    /// `12` of 6.12.
    pub minor: u32,
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Series {
    type Err = ();

    /// Also of a version: `6.12` of 6.12.117.
    fn from_str(text: &str) -> Result<Series, ()> {
        let mut numbers = text.split('.').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Series { major, minor }),
            _ => Err(()),
        }
    }
}

/// What turns a source of Linux into the guest kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// Which sources it is for.
    pub(super) series: Series,
    /// The distribution's package of such a source.
    pub(super) package: Package,
    /// Options that are on, all others being off: a fragment of a `.config`, of all series.
    pub(super) config: &'static str,
    /// Those in which the series differs from others.
    pub(super) own_config: &'static str,
    /// In the order in which they are applied.
    pub(super) patches: &'static [Patch],
}

/// A version of a package, and the digest of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Package {
    pub(super) version: &'static str,
    pub(super) sha256: &'static str,
}

/// A change of the source, as `patch` reads it, below its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// A patch of all series, or one of this series alone.
macro_rules! patch {
    ($name:literal) => {
        Patch {
            name: $name,
            text: include_str!(concat!("../../kernel/patches/", $name, ".patch")),
        }
    };
    ($series:literal, $name:literal) => {
        Patch {
            name: $name,
            text: include_str!(concat!(
                "../../kernel/patches/",
                $series,
                "/",
                $name,
                ".patch"
            )),
        }
    };
}

const CONFIG: &str = include_str!("../../kernel/config");

/// One for each series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipes {
    /// Its kernels measure unless others are asked for.
    pub(super) first: &'static Recipe,
    pub(super) others: &'static [Recipe],
}

/// This version of Lastbyte's.
pub(super) const RECIPES: Recipes = Recipes {
    first: &Recipe {
        series: Series {
            major: 6,
            minor: 12,
        },
        // The newest in the security archive of Debian 12.
        package: Package {
            version: "6.12.117-1~deb12u1",
            sha256: "e849faf31ca3555757f3a8877cb01af92122f744f75d1f3102734651c4e14703",
        },
        config: CONFIG,
        own_config: "",
        patches: &[
            patch!("0001-hz-1000"),
            patch!("6.12", "0002-amx-state"),
            patch!("6.12", "0003-seeded-randomness"),
            patch!("0004-clock-resolution"),
            patch!("6.12", "0005-processor-counter"),
            patch!("6.12", "0006-timer-registers"),
            patch!("6.12", "0007-floating-point-on-switch"),
            patch!("6.12", "0008-time-without-call"),
            patch!("0009-fault-around"),
            patch!("6.12", "0010-computing"),
            patch!("6.12", "0011-killed-dentries"),
            patch!("0012-mapped-ahead"),
            patch!("0013-read-ahead"),
        ],
    },
    // It asks the host how large the floating-point state is (0002), keeps none for timers (0006), and waits for
    // whoever kills a directory entry (0011).
    others: &[Recipe {
        series: Series { major: 7, minor: 3 },
        // In the backports of Debian 13.
        package: Package {
            version: "7.3.4-1~bpo13+1",
            sha256: "703e369ddd4cce971452f5a593ee55df3a5c10c83caf0fa0df039633ed181ee3",
        },
        config: CONFIG,
        own_config: include_str!("../../kernel/7.3.config"),
        patches: &[
            patch!("0001-hz-1000"),
            patch!("7.3", "0003-seeded-randomness"),
            patch!("0004-clock-resolution"),
            patch!("7.3", "0005-processor-counter"),
            patch!("7.3", "0007-floating-point-on-switch"),
            patch!("7.3", "0008-time-without-call"),
            patch!("0009-fault-around"),
            patch!("7.3", "0010-computing"),
            patch!("0012-mapped-ahead"),
            patch!("0013-read-ahead"),
            patch!("7.3", "0014-signal-frames"),
        ],
    }],
};

impl Recipes {
    pub(super) fn iter(self) -> impl Iterator<Item = &'static Recipe> {
        [self.first].into_iter().chain(self.others)
    }

    pub(super) fn of(self, series: Series) -> Option<&'static Recipe> {
        self.iter().find(|recipe| recipe.series == series)
    }

    /// The series that there are recipes for: `6.12 and 7.3`.
    pub(super) fn series(self) -> String {
        let names: Vec<_> = self.iter().map(|it| it.series.to_string()).collect();
        names.join(" and ")
    }

    /// Names what a build of this source has done so far: its series shows when it is unpacked.
    pub(super) fn work_key(self, source_sha256: &str) -> String {
        let digests: Vec<_> = self.iter().map(Recipe::digest).collect();
        let mut key = sha256(format!("{} {source_sha256}", digests.join(" ")).as_bytes());
        key.truncate(16);
        key
    }
}

impl Recipe {
    /// Names the recipe: a digest of all of it.
    pub(super) fn digest(&self) -> String {
        let config = self.config();
        let patches = self.patches.iter().map(|patch| patch.text);
        let mut all = format!("lastbyte kernel {VERSION}\n");
        for text in [&*config].into_iter().chain(patches) {
            all.push_str(&format!("{}\n{text}", text.len()));
        }
        sha256(all.as_bytes())
    }

    /// Names the kernel that this recipe makes of a source.
    pub(super) fn key(&self, source_sha256: &str) -> String {
        let mut key = sha256(format!("{} {source_sha256}", self.digest()).as_bytes());
        key.truncate(16);
        key
    }

    /// The fragment of a `.config`: that of all series, but for the options which its own has otherwise, and its own.
    pub(super) fn config(&self) -> String {
        let own = options(self.own_config);
        let own: Vec<_> = own.filter_map(|option| option.split('=').next()).collect();
        let is_shared = |line: &&str| {
            let name = line.trim().split('=').next().unwrap_or_default();
            !own.contains(&name)
        };
        let lines = self.config.split_inclusive('\n').filter(is_shared);
        lines.chain([self.own_config]).collect()
    }

    /// The options that a `.config` should have and hasn't. Kconfig leaves out silently what
    /// a source doesn't know or what lacks a dependency.
    pub(super) fn missing_options(&self, config: &str) -> Vec<String> {
        let has = |option: &str| match option.strip_suffix("=n") {
            Some(name) => !config.lines().any(|line| {
                let value = line.strip_prefix(name);
                value.is_some_and(|value| value.starts_with('='))
            }),
            None => config.lines().any(|line| line == option),
        };
        let wanted = self.config();
        let missing = options(&wanted).filter(|option| !has(option));
        missing.map(str::to_owned).collect()
    }
}

/// The options of a fragment.
fn options(config: &str) -> impl Iterator<Item = &str> {
    let lines = config.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}
