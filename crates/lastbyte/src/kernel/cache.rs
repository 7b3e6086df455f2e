//! The folder that kernels are kept in.

use std::env;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lastbyte_pki::Store;

use super::digest::{Digest, sha256_of_file};
use super::owner::foreign;
use super::recipe::{RECIPES, Recipe, Recipes, Series};
use super::released::is_released;
use super::{Kernel, KernelError, KernelInfo, LINUX, Size, Witness};

const PROGRAM: &str = "linux";
const INFO: &str = "kernel.json";
/// Beside a kernel that was built here, the digest of its description: none that comes from
/// elsewhere has this file.
const BUILT_HERE: &str = "built-here";
const LOCK: &str = "lock";
/// Of files that all may read, and nobody else may change, whatever the umask.
const FILE_MODE: u32 = 0o644;
const WORK: &str = "work-";
/// Where packages put kernels, seen from the folder of the program: `/usr/bin/lastbyte` has them in
/// `/usr/lib/lastbyte/kernels`.
const INSTALLED: &str = "../lib/lastbyte/kernels";

/// A folder of kernels, for the recipes of this version of Lastbyte, and those that were installed.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// A second folder of kernels, which is only read.
    installed: Option<PathBuf>,
    recipes: Recipes,
    /// The only series whose kernels measure, if one was asked for.
    wanted: Option<Series>,
}

/// What a cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cached {
    /// A kernel for this version of Lastbyte.
    Fitting(Kernel),
    /// A kernel for another version, with other options or patches.
    Other(Kernel),
    /// A kernel's folder whose files are missing or not as they were built.
    Damaged(PathBuf),
    /// What a build that was interrupted or failed has done so far.
    Unfinished(PathBuf),
}

impl Cache {
    /// The user's: in `$LASTBYTE_CACHE`, else `$XDG_CACHE_HOME/lastbyte`, else
    /// `~/.cache/lastbyte`.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoCache`] if none of them is known, [`KernelError::Foreign`] if kernels are there and others can put theirs,
    /// [`KernelError::UnknownSeries`] if [`LINUX`] names none that there is a recipe for.
    pub fn of_user() -> Result<Cache, KernelError> {
        let caches = Store::default_dir()?;
        let cache = Cache::new(&caches, RECIPES)?;
        if cache.folder.exists()
            && let Some(problem) = cache.parts(&caches).iter().find_map(|part| foreign(part))
        {
            return Err(KernelError::Foreign(problem));
        }
        Ok(Cache {
            installed: installed(),
            wanted: wanted(RECIPES)?,
            ..cache
        })
    }

    /// All that somebody could change to have another kernel run: folders, and the files of each
    /// kernel.
    pub(super) fn parts(&self, caches: &Path) -> Vec<PathBuf> {
        let mut parts = vec![caches.to_owned(), self.folder.clone()];
        for kernel in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let kernel = kernel.path();
            parts.extend([PROGRAM, INFO, BUILT_HERE].map(|file| kernel.join(file)));
            parts.push(kernel);
        }
        parts
    }

    /// `caches` is where each kind of cache has a folder.
    pub(super) fn new(caches: &Path, recipes: Recipes) -> Result<Cache, KernelError> {
        // Linux is built in a folder of its own, so a relative path would lead elsewhere.
        let folder = std::path::absolute(caches.join("kernel"));
        Ok(Cache {
            folder: folder.map_err(KernelError::cache(caches))?,
            installed: None,
            recipes,
            wanted: None,
        })
    }

    /// The same, with kernels of one series alone that measure.
    #[cfg(test)]
    pub(super) fn of_series(self, series: Series) -> Cache {
        Cache {
            wanted: Some(series),
            ..self
        }
    }

    /// The newest kernel for this version of Lastbyte, if there is one: of the series that was asked for, else of the first that
    /// there is one of. So which one measures depends on what there is, and not on what was built last.
    ///
    /// # Errors
    ///
    /// [`KernelError::Damaged`] if there is none but one that can't be used, [`KernelError::Cache`] if the folder can't be
    /// read.
    pub fn find(&self) -> Result<Option<Kernel>, KernelError> {
        let digests: Vec<_> = self.measuring().map(Recipe::digest).collect();
        for digest in &digests {
            if let Some(kernel) = self.find_where(|info| info.recipe_sha256 == *digest)? {
                return Ok(Some(kernel));
            }
        }
        let fits = |folder: &PathBuf| {
            let read = self.read(folder);
            !is_work(folder)
                && read.is_none_or(|kernel| digests.contains(&kernel.info.recipe_sha256))
        };
        match self
            .folders()?
            .into_iter()
            .chain(self.installed_folders()?)
            .find(fits)
        {
            Some(folder) => Err(self.damaged(folder)),
            None => Ok(None),
        }
    }

    /// The recipes whose kernels measure, the first first.
    fn measuring(&self) -> impl Iterator<Item = &'static Recipe> {
        let is_wanted = |recipe: &&Recipe| self.wanted.is_none_or(|it| it == recipe.series);
        self.recipes.iter().filter(is_wanted)
    }

    /// The recipe that a build follows whose source nobody has named.
    pub(super) fn recipe_of_package(&self) -> &'static Recipe {
        self.measuring().next().unwrap_or(self.recipes.first)
    }

    /// The recipes of this version of Lastbyte.
    pub(super) fn recipes(&self) -> Recipes {
        self.recipes
    }

    /// The recipe that has this digest.
    pub(super) fn recipe_of(&self, digest: &str) -> Option<&'static Recipe> {
        self.recipes.iter().find(|recipe| recipe.digest() == digest)
    }

    /// The error where [`Cache::find`] finds none.
    pub fn not_built(&self) -> KernelError {
        KernelError::NotBuilt {
            folder: self.folder.clone(),
            series: self.wanted,
        }
    }

    /// The error of a folder whose kernel can't be used.
    fn damaged(&self, folder: PathBuf) -> KernelError {
        let mend = if self.is_installed(&folder) {
            "install its package anew"
        } else {
            "`lastbyte kernel remove` removes it, and `lastbyte kernel build` makes it anew"
        };
        KernelError::Damaged { folder, mend }
    }

    /// The newest one of those whose origin is `wanted`.
    pub(super) fn find_where(
        &self,
        wanted: impl Fn(&KernelInfo) -> bool,
    ) -> Result<Option<Kernel>, KernelError> {
        let mut kernels: Vec<_> = (self.folders()?.iter().chain(&self.installed_folders()?))
            .filter(|folder| !is_work(folder))
            .filter_map(|folder| self.read(folder))
            .filter(|kernel| self.fits(kernel) && wanted(&kernel.info))
            .collect();
        kernels.sort_by(|a, b| b.info.built.cmp(&a.info.built));
        Ok(kernels.into_iter().find(is_intact))
    }

    /// Whether this version of Lastbyte has a recipe for it.
    fn fits(&self, kernel: &Kernel) -> bool {
        self.recipe_of(&kernel.info.recipe_sha256).is_some()
    }

    /// All that is cached or installed: kernels from the newest to the oldest, then the rest.
    ///
    /// # Errors
    ///
    /// [`KernelError::Cache`] if the folder can't be read.
    pub fn contents(&self) -> Result<Vec<Cached>, KernelError> {
        let classify = |folder: PathBuf| match self.read(&folder) {
            _ if is_work(&folder) => Cached::Unfinished(folder),
            Some(kernel) if !is_intact(&kernel) => Cached::Damaged(folder),
            Some(kernel) if self.fits(&kernel) => Cached::Fitting(kernel),
            Some(kernel) => Cached::Other(kernel),
            None => Cached::Damaged(folder),
        };
        let folders = self.folders()?.into_iter().chain(self.installed_folders()?);
        let mut contents: Vec<_> = folders.map(classify).collect();
        contents.sort_by(|a, b| b.built().cmp(&a.built()));
        Ok(contents)
    }

    /// Removes all kernels and what builds left behind, but for those that were installed, and says
    /// how much room that made.
    ///
    /// # Errors
    ///
    /// [`KernelError::Busy`] while a kernel is built, [`KernelError::Cache`] if something
    /// can't be removed.
    pub fn remove(&self) -> Result<Size, KernelError> {
        if !self.folder.exists() {
            return Ok(Size(0));
        }
        let _lock = self.try_lock()?.ok_or(KernelError::Busy)?;
        let mut freed = Size(0);
        for path in self.entries()? {
            // Whoever waits for the lock has it open.
            if path.file_name().is_some_and(|name| name != LOCK) {
                freed.0 += size(&path).0;
                remove_if_there(&path)?;
            }
        }
        Ok(freed)
    }

    /// The right to change the folder, unless somebody has it.
    pub(super) fn try_lock(&self) -> Result<Option<File>, KernelError> {
        // Of what others can change, nothing would be used.
        if let Some(problem) = foreign(&self.folder) {
            return Err(KernelError::Foreign(problem));
        }
        let path = self.folder.join(LOCK);
        let open = || {
            lastbyte_files::make_folders(&self.folder)?;
            // Tools get it as their input, so that it stays locked until they have ended.
            let mut options = OpenOptions::new();
            let options = options.create(true).read(true).append(true).mode(FILE_MODE);
            let file = options.open(&path)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        open().map_err(KernelError::cache(&path))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a package has put this there, so that it is not ours to change.
    pub fn is_installed(&self, path: &Path) -> bool {
        (self.installed.as_ref()).is_some_and(|installed| path.starts_with(installed))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("build.log")
    }

    pub(super) fn downloads(&self) -> PathBuf {
        self.folder.join("download")
    }

    /// Where a kernel is that was made elsewhere, until it has proved itself.
    pub(super) fn arrivals(&self) -> PathBuf {
        self.folder.join(format!("{WORK}fetch"))
    }

    /// Where the kernel of this key is built.
    pub(super) fn work(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{WORK}{key}"))
    }

    /// Where builds have stopped.
    pub(super) fn works(&self) -> Result<Vec<PathBuf>, KernelError> {
        let folders = self.folders()?;
        Ok(folders.into_iter().filter(|path| is_work(path)).collect())
    }

    /// Puts a folder that holds a program and its origin in place, and reads it back.
    pub(super) fn install(&self, key: &str, folder: &Path) -> Result<Kernel, KernelError> {
        let place = self.folder.join(key);
        shut(folder).map_err(KernelError::cache(folder))?;
        lastbyte_files::keep_folder(folder, &place).map_err(KernelError::cache(&place))?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it can't be read back");
        self.read(&place)
            .ok_or_else(|| KernelError::cache(&place)(damaged()))
    }

    fn read(&self, folder: &Path) -> Option<Kernel> {
        let info = fs::read(folder.join(INFO)).ok()?;
        let digest = Digest::of(&info);
        let built = fs::read_to_string(folder.join(BUILT_HERE));
        let witness = match built.ok().and_then(|built| built.trim_end().parse().ok()) {
            _ if self.is_installed(folder) => Witness::Installed,
            Some(built) if digest == built => Witness::Built,
            _ if is_released(&digest) => Witness::Released,
            _ => Witness::Itself,
        };
        Some(Kernel {
            path: program(folder),
            info: serde_json::from_slice(&info).ok()?,
            witness,
        })
    }

    /// The folders of kernels and of builds.
    fn folders(&self) -> Result<Vec<PathBuf>, KernelError> {
        let mut paths = self.entries()?;
        paths.retain(|path| path.is_dir() && *path != self.downloads());
        Ok(paths)
    }

    fn installed_folders(&self) -> Result<Vec<PathBuf>, KernelError> {
        let installed = self.installed.as_deref().map(entries);
        installed.unwrap_or_else(|| Ok(Vec::new()))
    }

    fn entries(&self) -> Result<Vec<PathBuf>, KernelError> {
        entries(&self.folder)
    }
}

impl Cached {
    fn built(&self) -> Option<&str> {
        match self {
            Cached::Fitting(kernel) | Cached::Other(kernel) => Some(&kernel.info.built),
            Cached::Damaged(_) | Cached::Unfinished(_) => None,
        }
    }
}

/// The series that was asked for, if one was.
fn wanted(recipes: Recipes) -> Result<Option<Series>, KernelError> {
    let Some(name) = env::var_os(LINUX).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let named = recipes
        .iter()
        .map(|recipe| recipe.series)
        .find(|series| *name == *series.to_string());
    named.map(Some).ok_or_else(|| KernelError::UnknownSeries {
        name: name.to_string_lossy().into_owned(),
        known: recipes.series(),
    })
}

/// Where a package of the program's own kind puts kernels.
fn installed() -> Option<PathBuf> {
    // Links are followed: what is called may be one to where it was installed.
    let program = fs::canonicalize(env::current_exe().ok()?).ok()?;
    fs::canonicalize(program.parent()?.join(INSTALLED)).ok()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let list = || match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
    };
    list().map_err(KernelError::cache(folder))
}

/// Writes a program's origin beside it.
pub(super) fn write_info(folder: &Path, info: &KernelInfo) -> Result<(), KernelError> {
    let path = folder.join(INFO);
    let write = || {
        let mut text = serde_json::to_string_pretty(info)?;
        text.push('\n');
        fs::write(&path, text)
    };
    write().map_err(KernelError::cache(&path))
}

/// Notes that what is in a folder was built here, once it is described.
pub(super) fn note_built(folder: &Path) -> Result<(), KernelError> {
    let path = folder.join(BUILT_HERE);
    let note = || {
        let digest = Digest::of(&fs::read(folder.join(INFO))?);
        fs::write(&path, format!("{digest}\n"))
    };
    note().map_err(KernelError::cache(&path))
}

/// Takes the right to change a kernel from all but its owner, who may have given it away with their
/// umask.
fn shut(folder: &Path) -> io::Result<()> {
    const OF_OTHERS: u32 = 0o022;
    let files = [PROGRAM, INFO, BUILT_HERE].map(|file| folder.join(file));
    let parts = [folder.to_owned()].into_iter().chain(files);
    for part in parts.filter(|part| part.exists()) {
        let mode = part.metadata()?.permissions().mode();
        fs::set_permissions(&part, Permissions::from_mode(mode & !OF_OTHERS))?;
    }
    Ok(())
}

/// Where a folder has the program.
pub(super) fn program(folder: &Path) -> PathBuf {
    folder.join(PROGRAM)
}

fn is_intact(kernel: &Kernel) -> bool {
    sha256_of_file(&kernel.path).is_ok_and(|sha256| sha256 == kernel.info.sha256)
}

fn is_work(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(WORK))
}

/// What a file or folder takes on the disk.
pub(super) fn size(path: &Path) -> Size {
    let Ok(metadata) = path.symlink_metadata() else {
        return Size(0);
    };
    let inside = (metadata.is_dir())
        .then(|| fs::read_dir(path).into_iter().flatten().flatten())
        .into_iter()
        .flatten();
    // What can't be read is not counted.
    let inside: u64 = inside.map(|entry| size(&entry.path()).0).sum();
    Size(metadata.blocks() * 512 + inside)
}

pub(super) fn remove_if_there(path: &Path) -> Result<(), KernelError> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(KernelError::cache(path)),
    }
}
