//! What can be done about a chain that is too long. A lever is a file here and a line of [`Lever::ALL`].

mod certificates;
mod compression;
mod edge;
mod resumption;
mod window;

use lastbyte_link::Probability;

use super::Setting;

/// Something that can be done.
pub struct Lever {
    /// In a word.
    pub name: &'static str,
    /// What it is, with what it is based on.
    pub doc: &'static str,
    /// The setting with it pulled, or why that can't be.
    pull: fn(&Setting, &Amounts) -> Result<Setting, String>,
    /// How far it is pulled, in words.
    words: fn(&Amounts) -> String,
}

/// How far levers are pulled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amounts {
    /// The server's initial window, in segments.
    pub initcwnd: u32,
    /// The share of connections that resume.
    pub resumes: Probability,
    /// What is left of each RTT.
    pub rtt_share: Probability,
}

impl Default for Amounts {
    fn default() -> Amounts {
        let share = |fraction| Probability::from_fraction(fraction).unwrap_or_default();
        Amounts {
            initcwnd: 32,
            resumes: share(0.94),
            rtt_share: share(0.5),
        }
    }
}

impl Lever {
    /// All that there are.
    pub const ALL: [&'static Lever; 5] = [
        &window::LEVER,
        &certificates::LEVER,
        &compression::LEVER,
        &resumption::LEVER,
        &edge::LEVER,
    ];

    /// A setting with it pulled.
    ///
    /// # Errors
    ///
    /// Why that can't be, in one line.
    pub fn pull(&self, setting: &Setting, amounts: &Amounts) -> Result<Setting, String> {
        let pulled = (self.pull)(setting, amounts)?;
        match pulled == *setting {
            true => Err("it is so already".to_owned()),
            false => Ok(Setting {
                name: self.name.to_owned(),
                ..pulled
            }),
        }
    }

    /// How far it is pulled, in words.
    pub fn words(&self, amounts: &Amounts) -> String {
        (self.words)(amounts)
    }
}

impl PartialEq for Lever {
    fn eq(&self, other: &Lever) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Lever {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The setting with a key of its arm said otherwise.
fn with(setting: &Setting, key: &str, value: &str) -> Result<Setting, String> {
    Ok(Setting {
        arm: setting.arm.with(key, value)?,
        ..setting.clone()
    })
}
