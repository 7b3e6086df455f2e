//! The kernels of Lastbyte's own releases, by their digests. Whoever trusts the program trusts these.

use super::digest::Digest;

/// A file as `sha256sum` writes it, with lines of comments.
const RELEASED: &str = include_str!("../../kernel/released");

/// Whether this is the digest of a release's archive, or of the `kernel.json` in one.
#[must_use]
pub fn is_released(digest: &Digest) -> bool {
    digests(RELEASED).any(|released| released == *digest)
}

fn digests(list: &str) -> impl Iterator<Item = Digest> {
    let words = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    words.filter_map(|word| word.parse().ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::digest::Digest;
    use super::{RELEASED, digests};

    #[test]
    fn every_line_has_a_digest_and_a_name() {
        for line in RELEASED.lines().filter(|line| !line.starts_with('#')) {
            let (digest, name) = line.split_once("  ").unwrap();
            assert!(digest.parse::<Digest>().is_ok(), "{line:?}");
            let is_named = name.ends_with(".tar.gz") || name.ends_with(".tar.gz/kernel.json");
            assert!(name.starts_with("lastbyte-kernel-") && is_named, "{line:?}");
        }
    }

    #[test]
    fn digests_of_a_list() {
        let (one, other) = (Digest::of(b"1"), Digest::of(b"2"));
        let list = format!("# Why\n{one}  a.tar.gz\n{other}  a.tar.gz/kernel.json\n");
        assert_eq!(digests(&list).collect::<Vec<_>>(), [one, other]);
        assert_eq!(digests("# none\n").count(), 0);
    }
}
