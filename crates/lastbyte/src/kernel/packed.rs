//! A kernel as one file, for machines without a compiler: `kernel.json` and `linux`, in this order,
//! in a tar archive that gzip compresses. The same kernel makes the same bytes, wherever it is
//! packed.

use std::env::consts::ARCH;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use lastbyte_link::is_hidden;
use tar::{Archive, Entry, EntryType, Header};
use thiserror::Error;

use super::cache::{self, Cache, remove_if_there};
use super::digest::{Digest, sha256};
use super::recipe::Recipe;
use super::{Kernel, KernelError, KernelInfo};

/// What the archive holds, in this order.
const PARTS: [&str; 2] = ["kernel.json", "linux"];
/// The largest of each, in bytes, which is some ten times what is usual.
const LARGEST: [u64; 2] = [64 << 10, 64 << 20];
/// Longer than any text of a [`KernelInfo`].
const LONGEST: usize = 300;

/// A kernel that was built elsewhere, read from a file and whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    info: KernelInfo,
    program: Vec<u8>,
}

/// A file holds no kernel that this machine could take: the end of a sentence about the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PackedError {
    /// It is no such archive.
    #[error("is no kernel: it takes what `lastbyte kernel pack` writes")]
    Unreadable,
    /// It ends too soon.
    #[error("is incomplete: get it again")]
    Truncated,
    /// Its sum is that of other bytes.
    #[error("is damaged: get it again")]
    Damaged,
    /// A part is not there.
    #[error("is no kernel: it has no {0:?}")]
    Missing(&'static str),
    /// There is something else in it.
    #[error("is no kernel: {0:?} has no place in it")]
    NoPlace(String),
    /// A part is something else, or too large.
    #[error("is no kernel: its {part:?} is no file of at most {largest} bytes")]
    NoFile {
        /// Which part.
        part: &'static str,
        /// In bytes.
        largest: u64,
    },
    /// Its description is none.
    #[error("is no kernel: its {0:?} can't be read")]
    Info(&'static str),
    /// Its description has what nobody should see.
    #[error("is no kernel: its {0:?} is odd")]
    Odd(&'static str),
    /// Its program is another one than its description is of.
    #[error("is damaged: its program is not the one that was built")]
    Program,
    /// Its program is of no version that its description tells.
    #[error("is damaged: its program is not Linux {0:?}")]
    Version(String),
    /// Its program is none.
    #[error("holds no program of 64-bit Linux")]
    NoProgram,
    /// It is for other machines.
    #[error("is a kernel for another processor: for {0}, and this one is {ARCH}")]
    Processor(String),
    /// It is for other programs.
    #[error(
        "is a kernel for another version of Lastbyte: its recipe is {found:.16}, and {wanted} is needed"
    )]
    Recipe {
        /// The digest of its recipe.
        found: String,
        /// Those of which one is needed, by their first digits.
        wanted: String,
    },
}

/// What became of one that was to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is kept now.
    New(Kernel),
    /// It was there already.
    AlreadyThere(Kernel),
}

impl Packed {
    /// The largest file that may be one, in bytes.
    pub const LARGEST: usize = 64 << 20;

    /// A kernel that is there.
    ///
    /// # Errors
    ///
    /// If its program can't be read, or is no longer as it was built.
    pub fn of(kernel: &Kernel) -> Result<Packed, KernelError> {
        let program = fs::read(&kernel.path).map_err(KernelError::cache(&kernel.path))?;
        let packed = Packed {
            info: kernel.info.clone(),
            program,
        };
        let whole = packed.check_program();
        whole.map_err(|problem| wrong(&kernel.path, &problem))?;
        Ok(packed)
    }

    /// The file.
    ///
    /// # Errors
    ///
    /// None that memory can have.
    pub fn write(&self) -> io::Result<Vec<u8>> {
        // zlib-rs finds the same matches on every processor at its best level only.
        let gzip = GzBuilder::new().mtime(0).operating_system(3);
        let mut archive = tar::Builder::new(gzip.write(Vec::new(), Compression::best()));
        let mut info = serde_json::to_vec_pretty(&self.info)?;
        info.push(b'\n');
        let contents = [(info.as_slice(), 0o644), (self.program.as_slice(), 0o755)];
        for (name, (content, mode)) in PARTS.into_iter().zip(contents) {
            let mut header = Header::new_ustar();
            header.set_path(name)?;
            header.set_mode(mode);
            header.set_size(content.len() as u64);
            header.set_mtime(0);
            header.set_cksum();
            archive.append(&header, content)?;
        }
        archive.into_inner()?.finish()
    }

    /// Reads such a file. Nothing of it is a path that anything is written to.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the end of a sentence about the file.
    pub fn read(bytes: &[u8]) -> Result<Packed, PackedError> {
        let all = GzDecoder::new(bytes).take(LARGEST.iter().sum::<u64>() + (64 << 10));
        let mut archive = Archive::new(all);
        // Raw, so that extended headers are files that do not belong there.
        let entries = archive.entries().map_err(unreadable)?;
        let mut parts = Vec::with_capacity(PARTS.len());
        for entry in entries.raw(true) {
            let mut entry = entry.map_err(unreadable)?;
            parts.push(part(&mut entry, parts.len())?);
        }
        // The sum over all of it is behind what the archive ends with.
        let mut all = archive.into_inner();
        io::copy(&mut all, &mut io::sink()).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => PackedError::Truncated,
            _ => PackedError::Damaged,
        })?;
        if !all.into_inner().into_inner().is_empty() {
            return Err(PackedError::NoPlace("what follows its end".to_owned()));
        }
        let parts: [Vec<u8>; 2] = parts.try_into().map_err(|parts: Vec<_>| {
            PackedError::Missing(PARTS.get(parts.len()).copied().unwrap_or_default())
        })?;
        let [info, program] = parts;
        let info: KernelInfo =
            serde_json::from_slice(&info).map_err(|_| PackedError::Info(PARTS[0]))?;
        let packed = Packed { info, program };
        packed.check_words()?;
        packed.check_program()?;
        Ok(packed)
    }

    /// Keeps it, if it has the recipe that is wanted. Nothing of it is run. `name` is what the user
    /// called it.
    ///
    /// # Errors
    ///
    /// [`KernelError::WrongSource`] if it does not fit, [`KernelError::Busy`] while a kernel is built,
    /// [`KernelError::NoRoom`] or [`KernelError::Cache`].
    pub fn take(&self, name: &Path, cache: &Cache) -> Result<Taken, KernelError> {
        let recipe = self
            .check_processor()
            .and_then(|()| self.recipe(cache))
            .and_then(|recipe| self.check_version().map(|()| recipe))
            .map_err(|problem| wrong(name, &problem))?;
        let same = |info: &KernelInfo| info.sha256 == self.info.sha256;
        if let Some(kernel) = cache.find_where(same)? {
            return Ok(Taken::AlreadyThere(kernel));
        }
        let _lock = cache.try_lock()?.ok_or(KernelError::Busy)?;
        let folder = cache.arrivals();
        let taken = self.put(&folder).and_then(|()| {
            let key = recipe.key(&self.info.source.sha256);
            cache.install(&key, &folder)
        });
        // Half a kernel is of no use to anybody.
        let removed = remove_if_there(&folder);
        let kernel = taken.map_err(|error| match error {
            KernelError::DiskFull(_) => KernelError::NoRoom(cache.folder().to_owned()),
            error => error,
        })?;
        removed?;
        Ok(Taken::New(kernel))
    }

    fn put(&self, folder: &Path) -> Result<(), KernelError> {
        remove_if_there(folder)?;
        let program = cache::program(folder);
        let put = || {
            lastbyte_files::make_folders(folder)?;
            fs::write(&program, &self.program)?;
            fs::set_permissions(&program, Permissions::from_mode(0o755))
        };
        put().map_err(KernelError::cache(&program))?;
        cache::write_info(folder, &self.info)
    }

    /// It is the program that its description is of.
    fn check_program(&self) -> Result<(), PackedError> {
        if sha256(&self.program) == self.info.sha256 {
            Ok(())
        } else {
            Err(PackedError::Program)
        }
    }

    /// What is shown of its description moves no cursor.
    fn check_words(&self) -> Result<(), PackedError> {
        let KernelInfo {
            version,
            sha256,
            source,
            recipe_sha256,
            config_sha256,
            patches,
            compiler,
            built,
            build_seconds: _,
        } = &self.info;
        let digests = [sha256, &source.sha256, recipe_sha256, config_sha256];
        let digests = digests
            .into_iter()
            .chain(patches.iter().map(|it| &it.sha256));
        let texts = [version, &source.name, compiler, built];
        let mut texts = texts.into_iter().chain(patches.iter().map(|it| &it.name));
        let is_plain = |text: &String| text.len() <= LONGEST && !text.contains(is_hidden);
        let are_digests = digests.map(|it| it.parse::<Digest>()).all(|it| it.is_ok());
        if are_digests && texts.all(is_plain) {
            Ok(())
        } else {
            Err(PackedError::Odd(PARTS[0]))
        }
    }

    /// It is for this processor, as the header of its program says (ELF-64, `e_machine`).
    fn check_processor(&self) -> Result<(), PackedError> {
        const START: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
        const X86_64: u16 = 62;
        const AARCH64: u16 = 183;
        let machine = self
            .program
            .get(18..20)
            .filter(|_| self.program.starts_with(&START));
        let machine = match machine {
            Some([low, high]) => u16::from_le_bytes([*low, *high]),
            _ => return Err(PackedError::NoProgram),
        };
        let processor = match machine {
            X86_64 => "x86_64".to_owned(),
            AARCH64 => "aarch64".to_owned(),
            other => format!("number {other} of ELF"),
        };
        if processor == ARCH {
            Ok(())
        } else {
            Err(PackedError::Processor(processor))
        }
    }

    /// It is of the version that its description tells, as it will say of itself when it boots
    /// (`linux_banner`).
    fn check_version(&self) -> Result<(), PackedError> {
        let banner = format!("Linux version {} (", self.info.version);
        let mut places = self.program.windows(banner.len());
        if places.any(|place| place == banner.as_bytes()) {
            Ok(())
        } else {
            Err(PackedError::Version(self.info.version.clone()))
        }
    }

    /// What it was made by, if kernels of this cache are.
    fn recipe(&self, cache: &Cache) -> Result<&'static Recipe, PackedError> {
        let found = &self.info.recipe_sha256;
        cache.recipe_of(found).ok_or_else(|| {
            let digests = cache.recipes().iter().map(Recipe::digest);
            PackedError::Recipe {
                found: found.clone(),
                wanted: digests
                    .map(|digest| format!("{digest:.16}"))
                    .collect::<Vec<_>>()
                    .join(" or "),
            }
        })
    }
}

/// The next part of an archive of which so many have been read.
fn part(entry: &mut Entry<'_, impl Read>, read: usize) -> Result<Vec<u8>, PackedError> {
    let path = entry.path_bytes();
    let expected = PARTS.get(read).copied();
    if expected.is_none_or(|name| *path != *name.as_bytes()) {
        let path: String = String::from_utf8_lossy(&path).chars().take(100).collect();
        return Err(PackedError::NoPlace(path));
    }
    let (size, largest) = (entry.size(), LARGEST.get(read).copied().unwrap_or(0));
    if entry.header().entry_type() != EntryType::Regular || size > largest {
        return Err(PackedError::NoFile {
            part: expected.unwrap_or_default(),
            largest,
        });
    }
    let mut content = Vec::new();
    let whole = entry.read_to_end(&mut content);
    match whole {
        Err(error) => Err(unreadable(error)),
        Ok(read) if read as u64 != size => Err(PackedError::Truncated),
        Ok(_) => Ok(content),
    }
}

fn unreadable(error: io::Error) -> PackedError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => PackedError::Truncated,
        _ => PackedError::Unreadable,
    }
}

fn wrong(path: &Path, problem: &PackedError) -> KernelError {
    KernelError::WrongSource {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
