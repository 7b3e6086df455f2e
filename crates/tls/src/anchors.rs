//! What the CAs of chains that are made are called as trust anchors.

use lastbyte_mtc::TrustAnchorId;

/// What a chain calls the CA with so many certificates above it.
pub fn of_level(level: usize) -> TrustAnchorId {
    TrustAnchorId::of_example([1, level as u8])
}

/// What that CA was called before its key was changed: as long, and of no path that a server has.
pub fn of_earlier(level: usize) -> TrustAnchorId {
    TrustAnchorId::of_example([2, level as u8])
}

/// Those of the paths of a server's chain with so many intermediates, the shortest path's first: the CA that issued the
/// end-entity's certificate, and the root.
pub fn available(intermediates: usize) -> Vec<TrustAnchorId> {
    let mut ids = vec![of_level(intermediates)];
    if intermediates > 0 {
        ids.push(of_level(0));
    }
    ids
}

#[cfg(test)]
mod tests {
    use lastbyte_sizes::ANCHOR_BYTES;

    use super::*;

    #[test]
    fn all_are_as_long_as_arithmetic_has_them() {
        assert_eq!(of_level(2).to_string(), "32473.1.2");
        assert_eq!(of_earlier(2).to_string(), "32473.2.2");
        for id in [of_level(0), of_level(3), of_earlier(3)] {
            assert_eq!(id.as_bytes().len(), ANCHOR_BYTES);
        }
    }
}
