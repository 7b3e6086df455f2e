//! Text inside of markup. HTML is made by `maud`, which escapes by type, CSV by `csv` and JSON by `serde_json`; for
//! terminals and shells there are [`visible`] and [`shell_word`](lastbyte_link::shell_word).

use lastbyte_link::visible;

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

/// A text as a field of CSV that spreadsheets show: what begins as this does, they would compute. The crate `csv` does the rest.
pub(super) fn csv_field(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// A text as Markdown that reads as just that, wherever it stands in a paragraph or in a field of a table: CommonMark
/// 0.31.2 (2.4), and what GitHub has besides.
pub(super) fn markdown(text: &str) -> String {
    let text = one_line(text);
    let text = text.trim_matches(' ');
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut out = String::new();
    for (place, c) in text.char_indices() {
        let rest = text.get(place..).unwrap_or_default();
        let means = match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '$' | '@' => true,
            // What makes a heading, an item of a list or a rule at the beginning of a line only.
            '#' | '+' | '-' | '=' => place == 0,
            '.' | ')' => place == digits && digits > 0,
            // What is an address without any bracket.
            ':' => rest.starts_with("://"),
            _ => false,
        };
        if means {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The same as a span of code (6.1), unless fields of tables would end in it.
pub(super) fn markdown_code(text: &str) -> String {
    let line = one_line(text);
    let line = line.trim_matches(' ');
    if line.is_empty() || line.contains('|') {
        return markdown(text);
    }
    let runs = line.split(|c| c != '`');
    let fence = "`".repeat(1 + runs.map(str::len).max().unwrap_or(0));
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// A text that ends no line of Markdown and hides nothing.
fn one_line(text: &str) -> String {
    visible(&text.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    use super::*;

    #[test]
    fn spreadsheets_compute_no_name() {
        for (name, field) in [
            ("=cmd|' /C calc'!A1", "'=cmd|' /C calc'!A1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@a", "'@a"),
            ("\t=1", "'\t=1"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(csv_field(name), field);
        }
    }

    /// The texts of the paragraphs and fields that somebody else reads; nothing where there is anything besides texts.
    fn read(text: &str) -> Option<Vec<String>> {
        let mut read = vec![String::new()];
        let github = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_MATH
            | Options::ENABLE_GFM;
        for event in Parser::new_ext(text, github) {
            match event {
                Event::Text(text) | Event::Code(text) => read.last_mut()?.push_str(&text),
                Event::Start(
                    Tag::Paragraph
                    | Tag::Table(_)
                    | Tag::TableHead
                    | Tag::TableRow
                    | Tag::TableCell,
                )
                | Event::End(TagEnd::Table | TagEnd::TableHead | TagEnd::TableRow) => {}
                Event::End(TagEnd::Paragraph | TagEnd::TableCell) => read.push(String::new()),
                _ => return None,
            }
        }
        read.pop();
        Some(read)
    }

    fn texts() -> impl Strategy<Value = String> {
        let pieces = [
            "a",
            "B2",
            "1",
            "17",
            " ",
            "  ",
            "\n",
            "\t",
            "\\",
            "`",
            "``",
            "*",
            "**",
            "_",
            "[",
            "]",
            "(",
            ")",
            "<",
            ">",
            "&",
            "&lt;",
            "|",
            "~",
            "~~",
            "#",
            "+",
            "-",
            "=",
            ".",
            ":",
            "://",
            "!",
            "@",
            "$",
            "$$",
            "{",
            "}",
            "^",
            "é",
            "\u{1b}",
            "\u{202e}",
            "https://evil.example/",
            "<img src=x onerror=alert(1)>",
            "[x](y)",
            "[^1]",
            "[^1]: x",
            "- ",
            "> ",
            "---",
            "===",
            "%",
            "\"",
            "'",
            "/",
            "www.",
            "±2%",
            "?",
        ];
        let piece = prop::sample::select(pieces.to_vec());
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn markdown_reads_as_its_text(text in texts()) {
            let shown = one_line(&text);
            let shown = shown.trim_matches(' ');
            for escaped in [markdown(&text), markdown_code(&text)] {
                prop_assert_eq!(escaped.lines().count(), usize::from(!shown.is_empty()), "{}", &escaped);
                let paragraph = read(&escaped);
                let expected: Vec<String> = (!shown.is_empty()).then(|| shown.to_owned()).into_iter().collect();
                prop_assert_eq!(paragraph, Some(expected), "{}", &escaped);
                let table = format!("| what | else |\n| --- | ---: |\n| {escaped} | 1 |\n");
                let fields = ["what", "else", shown, "1"].map(str::to_owned);
                prop_assert_eq!(read(&table), Some(fields.to_vec()), "{}", &table);
            }
        }
    }

    #[test]
    fn what_means_nothing_is_left_alone() {
        let plain = "At the median, SecP256r1MLKEM768/ml-dsa-65 adds 36.3 ms (+51 %): 1.31 ms of computing!";
        assert_eq!(markdown(plain), plain);
        assert_eq!(markdown("1. <b> @you"), r"1\. \<b\> \@you");
        assert_eq!(markdown_code("a`b"), "``a`b``");
    }
}
