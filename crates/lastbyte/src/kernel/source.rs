//! Where the source of Linux comes from.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::cache::{Cache, remove_if_there};
use super::digest::sha256_of_file;
use super::process::{AtInterrupt, Runner, ToolError};
use super::progress::Progress;
use super::recipe::{Recipe, Recipes, Series};
use super::tools::{self, Tool};
use super::{KernelError, Origin, SourceInfo};

/// Where a build has the source, with all patches.
pub(super) const TREE: &str = "tree";

/// The source that a kernel is to be built from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The distribution's package of a series.
    Package(&'static Recipe),
    /// A file that the user named.
    File(Archive),
}

/// A file that holds a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) info: SourceInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Tar,
    TarGz,
    TarXz,
    /// A package of Debian that has a tar archive under /usr/src.
    Deb,
}

impl Source {
    /// The user's file, if it can be read and is an archive.
    pub(super) fn of_file(path: &Path) -> Result<Source, KernelError> {
        let open = || {
            let path = fs::canonicalize(path)?;
            if !path.is_file() {
                return Ok((path, None));
            }
            let format = Format::of(&path)?;
            Ok((path, format))
        };
        let unreadable = |error: io::Error| wrong(path, format!("can't be read: {error}"));
        let (whole, format) = open().map_err(unreadable)?;
        let format = format.ok_or_else(|| {
            let problem = "is no source of Linux: it takes a .tar.xz, .tar.gz or .tar, or a \
                           linux-source package (.deb)";
            wrong(path, problem.to_owned())
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let info = SourceInfo {
            name: name.into_owned(),
            sha256: sha256_of_file(&whole).map_err(unreadable)?,
            origin: Origin::File,
        };
        Ok(Source::File(Archive {
            path: whole,
            format,
            info,
        }))
    }

    /// A kernel of this source that is there already.
    pub(super) fn built(&self, cache: &Cache) -> Result<Option<super::Kernel>, KernelError> {
        cache.find_where(|info| match self {
            Source::Package(recipe) => {
                info.source.origin != Origin::File && info.recipe_sha256 == recipe.digest()
            }
            Source::File(archive) => info.source.sha256 == archive.info.sha256,
        })
    }

    /// The tools that it takes to get and unpack it.
    pub(super) fn tools(&self) -> &'static [Tool] {
        match self {
            Source::Package(_) => &[tools::DPKG_DEB, tools::TAR, tools::XZ],
            Source::File(archive) => match archive.format {
                Format::Tar => &[tools::TAR],
                Format::TarGz => &[tools::TAR, tools::GZIP],
                Format::TarXz => &[tools::TAR, tools::XZ],
                Format::Deb => &[tools::DPKG_DEB, tools::TAR, tools::XZ],
            },
        }
    }

    pub(super) fn fetch(
        &self,
        cache: &Cache,
        runner: &Runner<'_>,
        progress: &dyn Progress,
    ) -> Result<Archive, KernelError> {
        match self {
            Source::File(archive) => Ok(archive.clone()),
            Source::Package(recipe) => download(recipe, cache, runner, progress),
        }
    }
}

impl Format {
    /// By its first bytes.
    fn of(path: &Path) -> io::Result<Option<Format>> {
        let mut start = Vec::new();
        File::open(path)?.take(512).read_to_end(&mut start)?;
        let magic = [
            (0, b"\xfd7zXZ\0".as_slice(), Format::TarXz),
            (0, b"\x1f\x8b", Format::TarGz),
            (0, b"!<arch>\ndebian-binary", Format::Deb),
            // POSIX.1-1988, the field `magic` of a header.
            (257, b"ustar", Format::Tar),
        ];
        let found = magic.into_iter().find(|(at, magic, _)| {
            let bytes = start.get(*at..);
            bytes.is_some_and(|bytes| bytes.starts_with(magic))
        });
        Ok(found.map(|(_, _, format)| format))
    }
}

/// With `apt-get download`, which any user may do and which checks the repository's signature.
fn download(
    recipe: &Recipe,
    cache: &Cache,
    runner: &Runner<'_>,
    progress: &dyn Progress,
) -> Result<Archive, KernelError> {
    let name = package_name(recipe.series);
    let pinned = recipe.package;
    if !runner.has("apt-get") {
        return Err(package_error(recipe, &name, "this system has no apt-get"));
    }
    let version = offered_version(recipe, runner)?;
    let package = format!("{name} {version}");
    let origin = if version == pinned.version {
        Origin::Pinned
    } else {
        progress.note(&format!(
            "apt offers {package} but not {}, which Lastbyte is tested with: using it",
            pinned.version
        ));
        Origin::Package
    };
    let path = cache.downloads().join(format!("{name}_{version}.deb"));
    if !path.exists() {
        progress.stage(&format!("downloading {package}, 150 MB"));
        fetch_package(recipe, &version, &path, cache, runner)?;
    }
    let sha256 = sha256_of_file(&path).map_err(KernelError::cache(&path))?;
    if origin == Origin::Pinned && sha256 != pinned.sha256 {
        remove_if_there(&path)?;
        let problem = format!(
            "its SHA-256 is {sha256} instead of {}; it is removed again",
            pinned.sha256
        );
        return Err(package_error(recipe, &package, &problem));
    }
    Ok(Archive {
        path,
        format: Format::Deb,
        info: SourceInfo {
            name: package,
            sha256,
            origin,
        },
    })
}

fn fetch_package(
    recipe: &Recipe,
    version: &str,
    path: &Path,
    cache: &Cache,
    runner: &Runner<'_>,
) -> Result<(), KernelError> {
    let name = package_name(recipe.series);
    // apt-get continues what it finds there.
    let partial = cache.downloads().join("partial");
    lastbyte_files::make_folders(&partial).map_err(KernelError::cache(&partial))?;
    let exact = format!("{name}={version}");
    let mut get = runner.tool("apt-get");
    let get = get.args(["download", &exact]).current_dir(&partial);
    let got = match runner.run(get) {
        // The lists may name what the repository no longer has.
        Err(ToolError::Failed(_)) if update(runner).is_ok() => runner.run(get),
        other => other,
    };
    got.map_err(|error| match error {
        ToolError::Failed(problem) => package_error(recipe, &format!("{name} {version}"), &problem),
        error => KernelError::from_tool("downloading", runner.log(), error),
    })?;
    let file = only_entry(&partial, ".deb")
        .ok_or_else(|| package_error(recipe, &name, "apt-get left no file"))?;
    lastbyte_files::keep(&file, path).map_err(KernelError::cache(path))?;
    remove_if_there(&partial)
}

/// The pinned version if apt has it, else the newest.
fn offered_version(recipe: &Recipe, runner: &Runner<'_>) -> Result<String, KernelError> {
    let name = package_name(recipe.series);
    let is_pinned = |version: &String| version == recipe.package.version;
    let mut versions = offered_versions(&name, runner)?;
    if !versions.iter().any(is_pinned) {
        match update(runner) {
            Ok(()) => versions = offered_versions(&name, runner)?,
            Err(ToolError::Failed(_)) => {}
            Err(error) => {
                return Err(KernelError::from_tool(
                    "apt-get update",
                    runner.log(),
                    error,
                ));
            }
        }
    }
    let pinned = versions.iter().position(is_pinned);
    let chosen = versions.into_iter().nth(pinned.unwrap_or(0));
    chosen.ok_or_else(|| {
        let problem = if geteuid().is_root() {
            "none of this system's repositories has it"
        } else {
            "apt knows no repository that has it (after `sudo apt-get update` it may)"
        };
        package_error(recipe, &name, problem)
    })
}

/// From the newest to the oldest.
fn offered_versions(package: &str, runner: &Runner<'_>) -> Result<Vec<String>, KernelError> {
    let mut command = runner.tool("apt-cache");
    match runner.lines(command.args(["madison", package])) {
        Ok(lines) => Ok((lines.iter())
            .filter_map(|line| madison(package, line))
            .collect()),
        Err(ToolError::Failed(_)) => Ok(Vec::new()),
        Err(error) => Err(KernelError::from_tool("apt-cache", runner.log(), error)),
    }
}

/// The version in a line such as `linux-source-6.12 | 6.12.117-1 | http://… Packages`.
fn madison(wanted: &str, line: &str) -> Option<String> {
    let mut fields = line.split('|').map(str::trim);
    let (package, version) = (fields.next()?, fields.next()?);
    let allowed = |char: char| char.is_ascii_alphanumeric() || ".+-~:".contains(char);
    let is_version = !version.is_empty() && version.chars().all(allowed);
    (package == wanted && is_version).then(|| version.to_owned())
}

/// Debian's name of a series' source.
fn package_name(series: Series) -> String {
    format!("linux-source-{series}")
}

/// Renews apt's lists, which only root can.
fn update(runner: &Runner<'_>) -> Result<(), ToolError> {
    if !geteuid().is_root() {
        return Err(ToolError::Failed("only root can".to_owned()));
    }
    let mut command = runner.tool("apt-get");
    runner.run_with(
        command.args(["--quiet", "update"]),
        AtInterrupt::Finish,
        |_| {},
    )
}

/// Unpacks an archive and applies the patches of its series. The tree takes its name when both are done.
pub(super) fn unpack(
    archive: &Archive,
    recipes: Recipes,
    work: &Path,
    runner: &Runner<'_>,
) -> Result<(PathBuf, &'static Recipe), KernelError> {
    let tree = work.join(TREE);
    if tree.exists() {
        let recipe = recipe(&tree, archive, recipes, runner)?;
        return Ok((tree, recipe));
    }
    let unpacking = work.join("unpacking");
    remove_if_there(&unpacking)?;
    let unpacked = unpack_into(&unpacking, archive, recipes, runner);
    let result = unpacked.and_then(|(root, recipe)| {
        fs::rename(&root, &tree).map_err(KernelError::cache(&tree))?;
        Ok((tree, recipe))
    });
    remove_if_there(&unpacking)?;
    result
}

fn unpack_into(
    unpacking: &Path,
    archive: &Archive,
    recipes: Recipes,
    runner: &Runner<'_>,
) -> Result<(PathBuf, &'static Recipe), KernelError> {
    let folder = unpacking.join("source");
    lastbyte_files::make_folders(&folder).map_err(KernelError::cache(&folder))?;
    let wrong = |problem: &str| archive.wrong(problem.to_owned(), runner);
    let not_whole = |problem| format!("can't be unpacked: {problem}");
    let tarball = match archive.format {
        Format::Deb => {
            let package = unpacking.join("package");
            let mut extract = runner.tool("dpkg-deb");
            let extract = extract.arg("--extract").arg(&archive.path).arg(&package);
            archive.check(runner.run(extract), runner, not_whole)?;
            let tarball = only_entry(&package.join("usr/src"), ".tar.");
            tarball.ok_or_else(|| wrong("is no linux-source package"))?
        }
        Format::Tar | Format::TarGz | Format::TarXz => archive.path.clone(),
    };
    let mut extract = runner.tool("tar");
    extract.args(["--extract", "--no-same-owner", "--directory"]);
    let extract = extract.arg(&folder).arg("--file").arg(&tarball);
    archive.check(runner.run(extract), runner, not_whole)?;
    let root = root(&folder)
        .ok_or_else(|| wrong("is no source of Linux: it has no Makefile at its top"))?;
    let recipe = recipe(&root, archive, recipes, runner)?;
    for part in ["arch/um", "arch/x86/um"] {
        if !root.join(part).is_dir() {
            return Err(wrong(&format!(
                "is no whole source of Linux: it has no {part}"
            )));
        }
    }
    for patch in recipe.patches {
        let file = unpacking.join("patch");
        fs::write(&file, patch.text).map_err(KernelError::cache(&file))?;
        let mut apply = runner.tool("patch");
        apply.args(["--strip=1", "--forward", "--batch", "--input"]);
        let apply = apply.arg(&file).current_dir(&root);
        archive.check(runner.run(apply), runner, |problem| {
            let series = recipe.series;
            let version = source_version(&root).map_or(series.to_string(), |it| it.to_string());
            format!(
                "is Linux {version}, which does not take the patch {}: {problem}",
                patch.name
            )
        })?;
    }
    Ok((root, recipe))
}

/// What a source is built by, as its version tells.
fn recipe(
    root: &Path,
    archive: &Archive,
    recipes: Recipes,
    runner: &Runner<'_>,
) -> Result<&'static Recipe, KernelError> {
    let version = source_version(root).ok_or_else(|| {
        let problem = "is no source of Linux: its Makefile tells no version";
        archive.wrong(problem.to_owned(), runner)
    })?;
    let Version { major, minor, .. } = version;
    recipes.of(Series { major, minor }).ok_or_else(|| {
        let problem = format!(
            "is Linux {version}: the virtual engine has patches for {}",
            recipes.series()
        );
        archive.wrong(problem, runner)
    })
}

impl Archive {
    /// What a tool made of the archive, which is at fault if it failed.
    pub(super) fn check(
        &self,
        result: Result<(), ToolError>,
        runner: &Runner<'_>,
        problem: impl FnOnce(String) -> String,
    ) -> Result<(), KernelError> {
        result.map_err(|error| match error {
            ToolError::Failed(line) => self.wrong(problem(line), runner),
            error => KernelError::from_tool("unpacking", runner.log(), error),
        })
    }

    /// The problem's subject is the archive.
    pub(super) fn wrong(&self, problem: String, runner: &Runner<'_>) -> KernelError {
        match self.info.origin {
            Origin::File => wrong(&self.path, problem),
            Origin::Pinned | Origin::Package => KernelError::Failed {
                step: "preparing the source",
                problem: format!("{} {problem}", self.info.name),
                log: runner.log().to_owned(),
            },
        }
    }
}

/// The folder with the Makefile: archives of Linux have one at their top.
fn root(folder: &Path) -> Option<PathBuf> {
    let has_makefile = |folder: &PathBuf| folder.join("Makefile").is_file();
    let folders = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let mut candidates = [folder.to_owned()].into_iter().chain(folders);
    candidates.find(has_makefile)
}

/// The only file of a folder whose name has this part.
fn only_entry(folder: &Path, part: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut named = entries.filter(|entry| entry.file_name().to_string_lossy().contains(part));
    Some(named.next()?.path())
}

/// The version of a source of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// As the first lines of its Makefile say.
pub(super) fn source_version(root: &Path) -> Option<Version> {
    let makefile = fs::read(root.join("Makefile")).ok()?;
    let makefile = String::from_utf8_lossy(&makefile);
    let number = |name: &str| {
        makefile.lines().take(20).find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().parse().ok())?
        })
    };
    Some(Version {
        major: number("VERSION")?,
        minor: number("PATCHLEVEL")?,
        patch: number("SUBLEVEL")?,
    })
}

fn wrong(path: &Path, problem: String) -> KernelError {
    KernelError::WrongSource {
        path: path.to_owned(),
        problem,
    }
}

fn package_error(recipe: &Recipe, package: &str, problem: &str) -> KernelError {
    KernelError::Package {
        series: recipe.series,
        package: package.to_owned(),
        problem: problem.to_owned(),
    }
}
