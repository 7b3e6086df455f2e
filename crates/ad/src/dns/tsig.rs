//! Keys that sign updates (RFC 8945), in the files that BIND's `tsig-keygen` writes.

use std::iter::Peekable;
use std::str::Chars;

use domain::tsig::{Algorithm, Key, KeyName};

/// Why a key file can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Something else was to stand there.
    #[error("{expected} is expected instead of {found}: write it as tsig-keygen does")]
    Syntax {
        /// What was expected.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// The name is no domain name.
    #[error("\"{0}\" is no name of a key: use a domain name")]
    Name(String),
    /// The algorithm is unknown.
    #[error("the algorithm \"{0}\" is unknown: use hmac-sha256, hmac-sha384 or hmac-sha512")]
    Algorithm(String),
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
    let mut words = Words(text.chars().peekable());
    words.require("key")?;
    let name = words.any("the name of the key")?;
    words.require("{")?;
    let mut algorithm = None;
    let mut secret = None;
    loop {
        match words.any("algorithm, secret or }")?.as_str() {
            "algorithm" => algorithm = Some(words.any("an algorithm")?),
            "secret" => secret = Some(words.any("a secret")?),
            "}" => break,
            found => {
                return Err(KeyError::Syntax {
                    expected: "algorithm, secret or }",
                    found: format!("\"{found}\""),
                });
            }
        }
        words.require(";")?;
    }
    let missing = |expected| {
        move || KeyError::Syntax {
            expected,
            found: "}".to_owned(),
        }
    };
    let algorithm = algorithm.ok_or_else(missing("algorithm"))?;
    let secret = secret.ok_or_else(missing("secret"))?;
    // Of lower case it is signed (RFC 8945, section 4.3.3).
    let owner: KeyName = (name.to_ascii_lowercase().parse()).map_err(|_| KeyError::Name(name))?;
    let algorithm: Algorithm = algorithm
        .trim_end_matches('.')
        .to_ascii_lowercase()
        .parse()
        .map_err(|_| KeyError::Algorithm(algorithm.clone()))?;
    let secret = openssl::base64::decode_block(&secret).map_err(|_| KeyError::Secret)?;
    if secret.is_empty() {
        return Err(KeyError::Secret);
    }
    Key::new(algorithm, &secret, owner, None, None).map_err(|_| KeyError::Secret)
}

/// The words of a configuration of BIND: names, quoted strings, braces and semicolons.
struct Words<'a>(Peekable<Chars<'a>>);

impl Words<'_> {
    fn require(&mut self, expected: &'static str) -> Result<(), KeyError> {
        let found = self.any(expected)?;
        if found == expected {
            return Ok(());
        }
        Err(KeyError::Syntax {
            expected,
            found: format!("\"{found}\""),
        })
    }

    fn any(&mut self, expected: &'static str) -> Result<String, KeyError> {
        self.next().ok_or(KeyError::Syntax {
            expected,
            found: "the end".to_owned(),
        })
    }
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text = &mut self.0;
        loop {
            match text.next()? {
                space if space.is_whitespace() => {}
                '#' => skip_line(text),
                '/' if text.next_if_eq(&'/').is_some() => skip_line(text),
                '/' if text.next_if_eq(&'*').is_some() => {
                    let mut last = ' ';
                    for next in text.by_ref() {
                        if (last, next) == ('*', '/') {
                            break;
                        }
                        last = next;
                    }
                }
                '"' => return Some(text.by_ref().take_while(|next| *next != '"').collect()),
                mark @ ('{' | '}' | ';') => return Some(mark.into()),
                first => {
                    let mut word = String::from(first);
                    let inside = |next: &char| !next.is_whitespace() && !"{};\"".contains(*next);
                    while let Some(next) = text.next_if(inside) {
                        word.push(next);
                    }
                    return Some(word);
                }
            }
        }
    }
}

fn skip_line(text: &mut Peekable<Chars<'_>>) {
    text.by_ref().find(|next| *next == '\n');
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{KeyError, key};

    #[test]
    fn a_file_of_tsig_keygen_is_read() {
        let text = "# made by tsig-keygen\nkey \"update.example\" {\n\talgorithm hmac-sha256;\n\
                    /* not ; this */ secret \"c2VjcmV0IHNlY3JldCE=\"; // last\n};\n";
        let key = key(text).unwrap();
        assert_eq!(key.name().to_string(), "update.example");
        assert_eq!(key.algorithm().to_string(), "hmac-sha256");
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "key is expected instead of the end"),
            ("zone x {}", "key is expected instead of \"zone\""),
            (
                "key x { algorithm hmac-sha256; }",
                "secret is expected instead of }",
            ),
            (
                "key x { secret \"AA==\"; }",
                "algorithm is expected instead of }",
            ),
            (
                "key x { algorithm md5; secret \"AA==\"; }",
                "the algorithm \"md5\" is unknown",
            ),
            (
                "key x { algorithm hmac-sha256; secret \"-\"; }",
                "not in base64",
            ),
            (
                "key x { algorithm hmac-sha256 secret",
                "; is expected instead of \"secret\"",
            ),
            (
                "key a..b { algorithm hmac-sha256; secret \"AA==\"; }",
                "is no name of a key",
            ),
        ] {
            let error: KeyError = key(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }
}
