//! Files that nobody else should read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{geteuid, getgroups};

/// A warning of a key's file that others than its owner can read. None of one that they can't, or
/// that can't be looked at, or whose group is how this process reads it, as those of ssl-cert do.
pub fn exposure(file: &Path) -> Option<String> {
    const GROUP: u32 = 0o040;
    const OTHERS: u32 = 0o004;
    let metadata = file.metadata().ok()?;
    let mode = metadata.mode();
    let by = match (mode & GROUP, mode & OTHERS) {
        (_, OTHERS) => "everybody",
        (GROUP, _) if !is_ours_through_its_group(&metadata) => "its group",
        _ => return None,
    };
    Some(format!(
        "\"{}\" can be read by {by}: a key is for its owner alone (chmod 600)",
        file.display()
    ))
}

fn is_ours_through_its_group(key: &Metadata) -> bool {
    let user = geteuid();
    let ours = getgroups().unwrap_or_default();
    !user.is_root()
        && user.as_raw() != key.uid()
        && ours.iter().any(|group| group.as_raw() == key.gid())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn whoever_else_can_read_a_key_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, by) in [
            (0o600, None),
            (0o700, None),
            (0o640, Some("its group")),
            (0o604, Some("everybody")),
            (0o644, Some("everybody")),
            (0o620, None),
        ] {
            set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            let told = exposure(file.path());
            assert_eq!(told.is_some(), by.is_some(), "{mode:o}");
            assert!(told.unwrap_or_default().contains(by.unwrap_or_default()));
        }
        assert_eq!(exposure("/nowhere".as_ref()), None);
    }
}
