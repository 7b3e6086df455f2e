//! Keys that sign updates (RFC 8945), in the files that BIND's `tsig-keygen` writes.

use domain::tsig::{Algorithm, Key, KeyName};

/// Why a key file can't be used. No word of it is shown: any may be the secret, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct KeyError {
    /// Where, from 1.
    pub line: usize,
    /// Where in the line, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: KeyProblem,
}

/// What is wrong with a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// Something else was to stand there.
    #[error("{0} is expected here: write it as tsig-keygen does")]
    Expected(&'static str),
    /// The name is no domain name.
    #[error("this is no name of a key: use a domain name")]
    Name,
    /// The algorithm is unknown.
    #[error("the algorithm is unknown: use hmac-sha256, hmac-sha384 or hmac-sha512")]
    Algorithm,
    /// The secret is not base64.
    #[error("the secret is not in base64")]
    Secret,
}

/// Reads `key "name" { algorithm hmac-sha256; secret "..."; };`.
///
/// # Errors
///
/// If the text is anything else.
pub fn key(text: &str) -> Result<Key, KeyError> {
    read(text).map_err(|(rest, problem)| {
        let before = text.get(..text.len() - rest).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        KeyError {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            problem,
        }
    })
}

/// What is wrong, and how many bytes before the end.
type Wrong = (usize, KeyProblem);

fn read(text: &str) -> Result<Key, Wrong> {
    let mut words = Words(text);
    words.require("key")?;
    let name = words.any("the name of the key")?;
    words.require("{")?;
    let mut algorithm = None;
    let mut secret = None;
    let end = loop {
        let word = words.any("algorithm, secret or }")?;
        match word.text {
            "algorithm" => algorithm = Some(words.any("an algorithm")?),
            "secret" => secret = Some(words.any("a secret")?),
            "}" => break word,
            _ => return Err(word.is(KeyProblem::Expected("algorithm, secret or }"))),
        }
        words.require(";")?;
    };
    let missing = |what| move || end.is(KeyProblem::Expected(what));
    let algorithm = algorithm.ok_or_else(missing("algorithm"))?;
    let secret = secret.ok_or_else(missing("secret"))?;
    // Of lower case it is signed (RFC 8945, section 4.3.3).
    let owner = name.text.to_ascii_lowercase().parse::<KeyName>();
    let owner = owner.map_err(|_| name.is(KeyProblem::Name))?;
    let algorithm_name = algorithm.text.trim_end_matches('.').to_ascii_lowercase();
    let standard = algorithm_name.parse::<Algorithm>();
    let standard = standard.map_err(|_| algorithm.is(KeyProblem::Algorithm))?;
    let wrong = || secret.is(KeyProblem::Secret);
    let bytes = openssl::base64::decode_block(secret.text).map_err(|_| wrong())?;
    if bytes.is_empty() {
        return Err(wrong());
    }
    Key::new(standard, &bytes, owner, None, None).map_err(|_| wrong())
}

/// A word, and how many bytes before the end it begins.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    rest: usize,
}

impl Word<'_> {
    fn is(self, problem: KeyProblem) -> Wrong {
        (self.rest, problem)
    }
}

/// The words of a configuration of BIND that are left: names, quoted strings, braces and
/// semicolons.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn require(&mut self, expected: &'static str) -> Result<(), Wrong> {
        let word = self.any(expected)?;
        if word.text == expected {
            Ok(())
        } else {
            Err(word.is(KeyProblem::Expected(expected)))
        }
    }

    fn any(&mut self, expected: &'static str) -> Result<Word<'a>, Wrong> {
        self.skip();
        let rest = self.0.len();
        match self.next() {
            Some(text) => Ok(Word { text, rest }),
            None => Err((rest, KeyProblem::Expected(expected))),
        }
    }

    /// White space and comments.
    fn skip(&mut self) {
        loop {
            let text = self.0.trim_start();
            let comments = [("#", "\n"), ("//", "\n"), ("/*", "*/")];
            let comment = comments
                .iter()
                .find_map(|(start, end)| Some((text.strip_prefix(start)?, end)));
            let Some((comment, end)) = comment else {
                self.0 = text;
                return;
            };
            self.0 = comment.split_once(end).map_or("", |(_, rest)| rest);
        }
    }

    /// The word that begins here.
    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        if let Some(quoted) = text.strip_prefix('"') {
            let (word, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
            self.0 = rest;
            return Some(word);
        }
        let is_end = |c: char| c.is_whitespace() || "{};\"".contains(c);
        let length = match text.chars().next()? {
            mark @ ('{' | '}' | ';') => mark.len_utf8(),
            _ => text.find(is_end).unwrap_or(text.len()),
        };
        let (word, rest) = text.split_at_checked(length)?;
        self.0 = rest;
        Some(word)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::key;

    #[test]
    fn a_file_of_tsig_keygen_is_read() {
        let text = "# made by tsig-keygen\nkey \"update.example\" {\n\talgorithm hmac-sha256;\n\
                    /* not ; this */ secret \"c2VjcmV0IHNlY3JldCE=\"; // last\n};\n";
        let key = key(text).unwrap();
        assert_eq!(key.name().to_string(), "update.example");
        assert_eq!(key.algorithm().to_string(), "hmac-sha256");
    }

    #[test]
    fn other_files_are_refused_with_the_place_and_the_reason() {
        for (text, reason) in [
            ("", "line 1, column 1: key is expected here"),
            ("zone x {}", "line 1, column 1: key is expected here"),
            (
                "key x {\n algorithm hmac-sha256; }",
                "line 2, column 25: secret is expected here",
            ),
            (
                "key x { secret \"AA==\"; }",
                "line 1, column 24: algorithm is expected here",
            ),
            (
                "# key\nkey x { algorithm md5; secret \"AA==\"; }",
                "line 2, column 19: the algorithm is unknown",
            ),
            (
                "key x { algorithm hmac-sha256; secret \"-\"; }",
                "line 1, column 39: the secret is not in base64",
            ),
            (
                "key x { algorithm hmac-sha256 secret",
                "line 1, column 31: ; is expected here",
            ),
            (
                "key a..b { algorithm hmac-sha256; secret \"AA==\"; }",
                "line 1, column 5: this is no name of a key",
            ),
            (
                "key x { algorithm hmac-sha256; secret \"AA==\";",
                "line 1, column 46: algorithm, secret or } is expected here",
            ),
        ] {
            let error = key(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }

    const SECRET: &str = "bm90IHRvIGJlIHRvbGQ=";

    #[test]
    fn no_error_tells_the_secret() {
        for text in [
            format!("hmac-sha256:update.example:{SECRET}"),
            format!("key update.example {{ algorithm hmac-sha256; \"{SECRET}\"; }};"),
            format!("key update.example {{ algorithm hmac-sha256; secret = \"{SECRET}\"; }};"),
            format!("key update.example {{ algorithm \"{SECRET}\"; secret x; }};"),
            format!("key \"{SECRET}..x\" {{ algorithm hmac-sha256; secret \"AA==\"; }};"),
            format!("{SECRET} key"),
            format!("key {SECRET}"),
            format!("key x {{ secret {SECRET}= }}"),
        ] {
            let error = key(&text).unwrap_err();
            for told in [error.to_string(), format!("{error:?}")] {
                assert!(!told.contains("bm90"), "{told}");
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_is_wrong_is_told_with_a_place_of_the_file(
            words in prop::collection::vec(
                prop_oneof![
                    Just("key".to_owned()), Just("{".to_owned()), Just("}".to_owned()), Just(";".to_owned()),
                    Just("algorithm".to_owned()), Just("hmac-sha256".to_owned()), Just("secret".to_owned()),
                    Just("\n".to_owned()), Just("/*".to_owned()), Just("*/".to_owned()), Just("\"".to_owned()),
                    Just(SECRET.to_owned()),
                ],
                0..20,
            )
        ) {
            let text = words.join(" ");
            if let Err(error) = key(&text) {
                prop_assert!(!error.to_string().contains("bm90"), "{}", error);
                prop_assert!(error.line <= text.lines().count() + 1);
                let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
                prop_assert!(error.column <= line.chars().count() + 1);
            }
        }
    }
}
