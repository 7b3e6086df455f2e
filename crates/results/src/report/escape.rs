//! Text inside of markup. HTML is made by `maud`, which escapes by type.

/// A text as it may stand in an attribute of XML or between its tags. What XML 1.0 can't hold at all (its
/// section 2.2) is replaced.
pub(super) fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&apos;",
            // In an attribute, these would be read as blanks.
            '\t' | '\n' | '\r' => out += &format!("&#{};", u32::from(c)),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A text of Markdown, such as a path in an arm, that ends neither its field nor its line.
pub(super) fn markdown(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// The same as a span of code.
pub(super) fn markdown_code(text: &str) -> String {
    format!("`{}`", markdown(text).replace('`', "'"))
}
