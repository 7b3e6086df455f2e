//! The right to make namespaces.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use super::LabError;

/// How this process came to be allowed to make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// It was already: it is root.
    Root,
    /// It made a user namespace of its own, where it is root.
    UserNamespace,
}

/// Makes sure that this process can make network namespaces, in a user namespace of its
/// own if need be, and leaves the calling thread in a fresh one. To be called before the
/// process has ever had a second thread: the kernel gives a user namespace to nobody
/// else, and a thread that was joined may still be on its way out.
pub fn acquire() -> Result<Privilege, LabError> {
    let failed = |error: Errno| LabError::Namespace(error.into());
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => return Ok(Privilege::Root),
        Err(Errno::EPERM) => {}
        Err(error) => return Err(failed(error)),
    }
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(failed)?;
    let map = || -> io::Result<()> {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    map().map_err(LabError::Namespace)?;
    Ok(Privilege::UserNamespace)
}
