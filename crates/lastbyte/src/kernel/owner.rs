//! Whose a folder is from which programs and keys are taken.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{getegid, geteuid};

/// Why what is at a path may be somebody else's: somebody besides this user and root can change it,
/// a folder above it, or a link that leads there. What is not there yet is whose the folder above
/// it is.
#[must_use]
pub fn foreign(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let links = path.ancestors().filter(|place| place.is_symlink());
    let targets = links.filter_map(|link| {
        let target = link.canonicalize().ok()?;
        let which = if link == path {
            Which::Itself
        } else {
            Which::Above
        };
        Some((target, which))
    });
    let places: Vec<_> = [(path.clone(), Which::Itself)]
        .into_iter()
        .chain(targets)
        .collect();
    let mut all = places.iter().flat_map(|(place, which)| {
        let above = place.ancestors().skip(1);
        [(place.as_path(), *which)]
            .into_iter()
            .chain(above.map(|place| (place, Which::Above)))
    });
    all.find_map(|(place, which)| {
        let found = place.symlink_metadata().ok()?;
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let problem = problem(&found, which, user, group)?;
        (!is_unknown(found.uid())).then(|| format!("{place:?} {problem}"))
    })
}

/// Whether this is what owners seem to be that a user namespace has no number for
/// (user_namespaces(7)): of them, nothing is known.
fn is_unknown(user: u32) -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let is_overflow = read("/proc/sys/kernel/overflowuid").trim().parse() == Ok(user);
    let ranges = read("/proc/self/uid_map");
    let mut ranges = ranges.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let first = first.ok()?;
        Some(first..first.saturating_add(count.ok()?))
    });
    is_overflow && !ranges.any(|range| range.contains(&user))
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// What is asked about.
    Itself,
    /// A folder that has it.
    Above,
}

fn problem(found: &Metadata, which: Which, user: u32, group: u32) -> Option<String> {
    const ALL: u32 = 0o002;
    const GROUP: u32 = 0o020;
    /// Who may write into a folder that has it can change nothing that others have there: `/tmp`.
    const STICKY: u32 = 0o1000;
    if ![0, user].contains(&found.uid()) {
        return Some(format!("belongs to user {}", found.uid()));
    }
    let is_sticky = which == Which::Above && found.mode() & STICKY != 0;
    // The mode of a link says nothing.
    if is_sticky || found.is_symlink() {
        return None;
    }
    // Many systems give each user a group of their own, and let it write.
    let of_group = found.mode() & GROUP != 0 && found.gid() != group;
    (of_group || found.mode() & ALL != 0).then(|| "can be changed by others".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;

    use tempfile::TempDir;

    use super::{Which, foreign, problem};

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
            let told = problem(&found(mode), Which::Itself, user, group);
            assert_eq!(
                told.is_some(),
                is_foreign,
                "{mode:o} {user} {group}: {told:?}"
            );
        }
        // Root's are everybody's.
        let told = problem(&found(0o700), Which::Itself, user + 1, group);
        assert_eq!(told.is_some(), user != 0, "{told:?}");
    }

    /// Who can rename a folder above can put another one in its place.
    #[test]
    fn folders_above_and_links_are_looked_at() {
        let folder = TempDir::new().unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let [above, other] = ["above", "other"].map(|name| folder.path().join(name));
        let (own, link) = (above.join("cache"), folder.path().join("link"));
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&own, &link).unwrap();
        for path in [folder.path(), &above, &other, &own] {
            set(path, 0o755);
        }
        let problem = |path: &Path| foreign(path).unwrap_or_default();
        for path in [&own, &link, &own.join("not/there"), &link.join("kernel")] {
            assert_eq!(problem(path), "");
        }
        // As /tmp is.
        set(&above, 0o1777);
        assert_eq!(problem(&own), "");
        set(&above, 0o777);
        for path in [&own, &link, &own.join("not/there"), &link.join("kernel")] {
            let said = format!("{above:?} can be changed by others");
            assert_eq!(problem(path), said, "{path:?}");
        }
        assert_eq!(problem(&other), "");
        // The folder that has the link.
        set(&above, 0o755);
        set(folder.path(), 0o777);
        assert!(problem(&link).contains("can be changed by others"));
        set(folder.path(), 0o700);
    }
}
