//! Things that are chosen by name, and what to say of a name that is none.

/// `did you mean "mbit"?` when a known word is near, else all of them.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    /// Half of the characters may differ.
    const ALIKE: f64 = 0.5;
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let word = word.to_ascii_lowercase();
    let likeness =
        |name: &str| strsim::normalized_damerau_levenshtein(&word, &name.to_ascii_lowercase());
    let alike = (candidates.iter())
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match (alike, &candidates[..]) {
        (Some((_, nearest)), _) => format!("did you mean {nearest:?}?"),
        (None, []) => "there is none".to_owned(),
        (None, [name]) => format!("use {name:?}"),
        (None, _) => format!("use one of {}", candidates.join(", ")),
    }
}

/// Whether a character moves a terminal's cursor, changes its colours or turns the direction of
/// what follows, and is not seen itself.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A text of somebody else, with the numbers of hidden characters in their places.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A text of somebody else, as a shell takes it for one word. A terminal shows all of it.
///
/// Hidden characters are written as bash, zsh and POSIX (2024, 2.2.4) have them, in `$'…'`.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    // In zsh, `=ls` is where ls is.
    if !text.is_empty() && !text.starts_with('=') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.contains(is_hidden) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut word = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            c if is_hidden(c) => {
                // In octal, which has three digits at most: a digit may follow.
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                word.extend(bytes.map(|byte| format!("\\{byte:03o}")));
            }
            c => word.push(c),
        }
    }
    word + "'"
}

/// The text is no name of such a thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} {text:?}: {hint}")]
pub struct UnknownName {
    /// What it should name.
    pub kind: &'static str,
    /// What was found.
    pub text: String,
    /// The nearest known name, or all of them.
    pub hint: String,
}

impl UnknownName {
    /// The error of a `text` that is none of the `candidates`, names of a `kind`.
    pub fn new<'a>(
        kind: &'static str,
        text: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> UnknownName {
        UnknownName {
            kind,
            text: text.to_owned(),
            hint: nearest(text, candidates),
        }
    }
}

/// Names the variants of an enum, which is then written by them, and read if it says what they
/// name.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Switch {
///     Off,
///     On,
/// }
/// lastbyte_link::named!(Switch, "switch", { Off => "off", On => "on" });
///
/// assert_eq!("on".parse(), Ok(Switch::On));
/// let unknown = "onn".parse::<Switch>().unwrap_err();
/// assert_eq!(unknown.to_string(), r#"unknown switch "onn": did you mean "on"?"#);
/// ```
#[macro_export]
macro_rules! named {
    ($type:ident, { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// All that there are, in the order in which they are reported.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// The name, on the command line and in files too where it is read.
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
    };
    ($type:ident, $kind:literal, { $($variant:ident => $name:literal),+ $(,)? }) => {
        $crate::named!($type, { $($variant => $name),+ });

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<$type, Self::Err> {
                let names = $type::ALL.map($type::name);
                $type::ALL
                    .into_iter()
                    .find(|named| named.name() == text)
                    .ok_or_else(|| $crate::UnknownName::new($kind, text, names))
            }
        }
    };
}
