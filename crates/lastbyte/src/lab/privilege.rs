//! The right to make namespaces.

use std::fs;
use std::io;
use std::thread;

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
/// own if need be. To be called before the process has a second thread: the kernel
/// allows it to nobody else.
pub fn acquire() -> Result<Privilege, LabError> {
    if thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET))
        .join()
        .is_ok_and(|result| result.is_ok())
    {
        return Ok(Privilege::Root);
    }
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| LabError::Namespace(error.into()))?;
    let map = || -> io::Result<()> {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    map().map_err(LabError::Namespace)?;
    Ok(Privilege::UserNamespace)
}
