//! Settings that are chosen by name.

use super::mend;

/// The text is no name of such a thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} {text:?}: {mend}")]
pub struct UnknownName {
    /// What it should name.
    pub kind: &'static str,
    /// What was found.
    pub text: String,
    /// The nearest known name, or all of them.
    pub mend: String,
}

impl UnknownName {
    pub(crate) fn new<'a>(
        kind: &'static str,
        text: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self {
            kind,
            text: text.to_owned(),
            mend: mend(text, known),
        }
    }
}

/// Names the variants of an enum, which is then written and read by them.
macro_rules! named {
    ($type:ident, $kind:literal, { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// All that there are, in the order in which they are told.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// The name on the command line and in files.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::study::UnknownName;

            fn from_str(text: &str) -> Result<$type, Self::Err> {
                let names = $type::ALL.map($type::name);
                $type::ALL
                    .into_iter()
                    .find(|named| named.name() == text)
                    .ok_or_else(|| $crate::study::UnknownName::new($kind, text, names))
            }
        }
    };
}

pub(crate) use named;
