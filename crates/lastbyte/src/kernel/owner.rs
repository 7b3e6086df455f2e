//! Whose a folder is from which programs and keys are taken.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{getegid, geteuid};

/// Why what is in a folder may be somebody else's, if it is there: somebody besides this user and root can change it.
#[must_use]
pub fn foreign(folder: &Path) -> Option<String> {
    let found = folder.metadata().ok()?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    problem(&found, user, group).map(|problem| format!("{folder:?} {problem}"))
}

fn problem(found: &Metadata, user: u32, group: u32) -> Option<String> {
    const ALL: u32 = 0o002;
    const GROUP: u32 = 0o020;
    if ![0, user].contains(&found.uid()) {
        return Some(format!("belongs to user {}", found.uid()));
    }
    // Many systems give each user a group of their own, and let it write.
    let of_group = found.mode() & GROUP != 0 && found.gid() != group;
    (of_group || found.mode() & ALL != 0).then(|| "can be changed by others".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use tempfile::TempDir;

    use super::problem;

    #[test]
    fn what_others_can_change_is_theirs() {
        let folder = TempDir::new().unwrap();
        let found = |mode| {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            folder.path().metadata().unwrap()
        };
        let (user, group) = (found(0o700).uid(), found(0o700).gid());
        for (mode, user, group, is_foreign) in [
            (0o700, user, group, false),
            (0o755, user, group, false),
            (0o775, user, group, false),
            (0o775, user, group + 1, true),
            (0o777, user, group, true),
        ] {
            let told = problem(&found(mode), user, group);
            assert_eq!(
                told.is_some(),
                is_foreign,
                "{mode:o} {user} {group}: {told:?}"
            );
        }
        // Root's are everybody's.
        let told = problem(&found(0o700), user + 1, group);
        assert_eq!(told.is_some(), user != 0, "{told:?}");
    }
}
