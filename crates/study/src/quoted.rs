//! Texts in TOML.

use std::fmt::Display;

/// A basic string of TOML.
pub fn quoted(text: impl Display) -> String {
    let escaped = text
        .to_string()
        .chars()
        .fold(String::new(), |text, c| match c {
            '"' | '\\' => format!("{text}\\{c}"),
            c if c.is_control() => format!("{text}\\u{:04X}", u32::from(c)),
            c => format!("{text}{c}"),
        });
    format!("\"{escaped}\"")
}
