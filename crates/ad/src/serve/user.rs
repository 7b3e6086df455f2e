//! Whose process it is, and what others may see of it.

use std::ffi::CString;
use std::io;
use std::str::FromStr;
use std::thread;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{
    Gid, Group, Uid, User, getegid, geteuid, getgrouplist, initgroups, setresgid, setresuid, setuid,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use thiserror::Error;

/// Who a server is once it has its socket and its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    name: String,
    user: Uid,
    group: Gid,
}

/// Why this can't be.
#[derive(Debug, Error)]
pub enum AccountError {
    /// There is none.
    #[error("there is no {kind} \"{name}\" here")]
    Unknown {
        /// User or group.
        kind: &'static str,
        /// What was asked for.
        name: String,
    },
    /// The system refuses.
    #[error("can't become {name}: {error}; only root can become somebody else")]
    Refused {
        /// Whom.
        name: String,
        /// The system's words.
        error: io::Error,
    },
    /// It is root, still or again.
    #[error("can't give up root's rights by becoming {0}: name a user without them")]
    Root(String),
}

/// `NAME` or `NAME:GROUP`, as this machine knows them.
impl FromStr for Account {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Account, AccountError> {
        let (name, group) = match text.split_once(':') {
            Some((name, group)) => (name, Some(group)),
            None => (text, None),
        };
        let unknown = |kind, name: &str| AccountError::Unknown {
            kind,
            name: name.to_owned(),
        };
        // What can't be looked up is not there.
        let user = User::from_name(name).ok().flatten();
        let user = user.ok_or_else(|| unknown("user", name))?;
        let group = match group {
            None => user.gid,
            Some(group) => {
                let found = Group::from_name(group).ok().flatten();
                found.ok_or_else(|| unknown("group", group))?.gid
            }
        };
        if user.uid.is_root() {
            Err(AccountError::Root(name.to_owned()))
        } else {
            Ok(Account {
                name: name.to_owned(),
                user: user.uid,
                group,
            })
        }
    }
}

impl Account {
    /// Becomes it for good, with its groups and no others.
    ///
    /// # Errors
    ///
    /// If the system does not let it, or could be asked to undo it.
    pub fn assume(&self) -> Result<(), AccountError> {
        if self.is_own() {
            return Ok(());
        }
        let refused = |error: Errno| self.refused(error);
        let name = CString::new(self.name.as_str()).map_err(|_| refused(Errno::EINVAL))?;
        initgroups(&name, self.group).map_err(refused)?;
        setresgid(self.group, self.group, self.group).map_err(refused)?;
        setresuid(self.user, self.user, self.user).map_err(refused)?;
        match setuid(Uid::from_raw(0)) {
            Ok(()) => Err(AccountError::Root(self.name.clone())),
            Err(_) => Ok(()),
        }
    }

    /// What `look` finds when this account looks, and not the one that this process has.
    ///
    /// # Errors
    ///
    /// If the system does not let it.
    pub(super) fn sees<T: Send>(&self, look: impl FnOnce() -> T + Send) -> Result<T, AccountError> {
        if self.is_own() {
            return Ok(look());
        }
        let gid = |group: Gid| rustix::process::Gid::from_raw(group.as_raw());
        let outcome = thread::scope(|scope| {
            // Of the thread alone: it can't be undone, and the others stay who they are.
            let looking = scope.spawn(|| {
                let groups: Vec<_> = self.groups()?.into_iter().map(gid).collect();
                let (user, group) = (self.user.as_raw(), gid(self.group));
                let user = rustix::process::Uid::from_raw(user);
                set_thread_groups(&groups)?;
                set_thread_res_gid(group, group, group)?;
                set_thread_res_uid(user, user, user)?;
                io::Result::Ok(look())
            });
            let panicked = |_| Err(io::Error::other("it could not be looked at"));
            looking.join().unwrap_or_else(panicked)
        });
        outcome.map_err(|error| self.refused(error))
    }

    fn is_own(&self) -> bool {
        geteuid() == self.user && getegid() == self.group
    }

    fn groups(&self) -> io::Result<Vec<Gid>> {
        Ok(getgrouplist(
            &CString::new(self.name.as_str())?,
            self.group,
        )?)
    }

    fn refused(&self, error: impl Into<io::Error>) -> AccountError {
        AccountError::Refused {
            name: self.name.clone(),
            error: error.into(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Keeps keys from other processes of this user, and from core dumps. Nothing that is started gets
/// other rights.
///
/// # Errors
///
/// If the system refuses.
pub fn shield() -> Result<(), Errno> {
    prctl::set_no_new_privs()?;
    prctl::set_dumpable(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Account;

    #[test]
    fn users_are_known_by_name() {
        let nobody: Account = "nobody".parse().unwrap();
        assert_eq!(nobody.name(), "nobody");
        let with_group: Account = "nobody:daemon".parse().unwrap();
        assert_ne!(nobody, with_group);
        for (text, message) in [
            ("nobody-at-all", "there is no user \"nobody-at-all\" here"),
            ("nobody:no-group", "there is no group \"no-group\" here"),
            (
                "root",
                "can't give up root's rights by becoming root: name a user without them",
            ),
        ] {
            assert_eq!(text.parse::<Account>().unwrap_err().to_string(), message);
        }
    }
}
