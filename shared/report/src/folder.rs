//! Output appears whole or not at all: written beside, then renamed.

use protocol::name::RunId;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file by which a folder of results is known.
const RESULT_FILE: &str = "result.json";

/// Folders within it that hold what stays with the patients.
const FOLDERS: [&str; 3] = ["patients", "sites", "card"];

/// What may lie in a folder of results and go, once the new results are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replace {
    /// Nothing.
    Nothing,
    /// An earlier copy of the same run's results.
    Run(RunId),
    /// The results of any run.
    Results,
}

impl Replace {
    /// The results of any run where that is asked for with `--force`, else nothing.
    #[must_use]
    pub fn forced(force: bool) -> Self {
        match force {
            true => Self::Results,
            false => Self::Nothing,
        }
    }
}

/// A folder of results in the making. Dropped without [`PendingFolder::finish`], it leaves nothing.
#[derive(Debug)]
pub struct PendingFolder {
    partial: PathBuf,
    target: PathBuf,
    replace: Replace,
    finished: bool,
}

/// The output folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It holds something that is no result of a run.
    #[error(
        "output folder {}: found {found}, which is not a result of a run; wanted an empty or absent folder, or nothing but an \
         earlier result to replace",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// It holds the results of another run.
    #[error(
        "output folder {}: found the results of {found}, wanted an empty or absent folder; --force replaces them",
        path.display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// The run.
        found: String,
    },
    /// It could be used when the run began, and no longer.
    #[error("{fault}; the new results lie in {}", kept.display())]
    Late {
        /// What is in the way.
        fault: Box<FolderError>,
        /// Where the results are.
        kept: PathBuf,
    },
    /// The file system said no.
    #[error("output folder {} could not be written", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl FolderError {
    /// Whether the folder that was named is the fault, and another one the remedy.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Occupied { .. } | Self::Other { .. } => true,
            Self::Late { .. } => false,
            Self::Write { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::ReadOnlyFilesystem
            ),
        }
    }
}

impl PendingFolder {
    /// Makes `TARGET.partial`. What lies at `target` is replaced only when this finishes, and only what `replace` names.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn begin(target: &Path, replace: Replace) -> Result<Self, FolderError> {
        let write = |source| FolderError::Write {
            path: target.to_owned(),
            source,
        };
        let target = std::path::absolute(target).map_err(write)?;
        judge(&target, &replace)?;
        let partial = beside(&target, "partial");
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(write)?;
        }
        private_folder(&partial).map_err(write)?;
        Ok(Self {
            partial,
            target,
            replace,
            finished: false,
        })
    }

    /// Where to write.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// [`FolderError::Late`] where something has come to lie there meanwhile, [`FolderError::Write`].
    pub fn finish(mut self) -> Result<PathBuf, FolderError> {
        let write = |source| FolderError::Write {
            path: self.target.clone(),
            source,
        };
        if let Err(fault) = judge(&self.target, &self.replace) {
            self.finished = true;
            let (fault, kept) = (Box::new(fault), self.partial.clone());
            return Err(FolderError::Late { fault, kept });
        }
        let old = self.target.exists().then(|| unused(&self.target));
        if let Some(old) = &old {
            fs::rename(&self.target, old).map_err(write)?;
        }
        fs::rename(&self.partial, &self.target).map_err(write)?;
        if let Some(old) = &old {
            fs::remove_dir_all(old).map_err(write)?;
        }
        self.finished = true;
        Ok(self.target.clone())
    }
}

/// Whether all that lies at `target` may go.
fn judge(target: &Path, replace: &Replace) -> Result<(), FolderError> {
    let occupied = |found: &str| FolderError::Occupied {
        path: target.to_owned(),
        found: found.to_owned(),
    };
    let entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(occupied("a file"));
        }
        Err(source) => {
            let path = target.to_owned();
            return Err(FolderError::Write { path, source });
        }
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    names.sort();
    let left: Left = fs::read(target.join(RESULT_FILE))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let is_own = |name: &String| left.files.contains(name) || FOLDERS.contains(&name.as_str());
    if let Some(foreign) = names.iter().find(|name| !is_own(name)) {
        return Err(occupied(foreign));
    }
    let may_go = match replace {
        Replace::Nothing => false,
        Replace::Run(run) => left.run == run.as_str(),
        Replace::Results => true,
    };
    if may_go {
        return Ok(());
    }
    Err(FolderError::Other {
        path: target.to_owned(),
        found: format!("run {} of the job {:?}", left.run, left.job),
    })
}

/// What `result.json` says of the folder that it lies in.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Left {
    run: String,
    job: String,
    files: Vec<String>,
}

/// A name beside `target` that nothing has.
fn unused(target: &Path) -> PathBuf {
    let plain = beside(target, "old");
    let numbered = (2_u64..).map(|number| beside(target, &format!("old-{number}")));
    let mut names = std::iter::once(plain.clone()).chain(numbered);
    names.find(|path| !path.exists()).unwrap_or(plain)
}

impl Drop for PendingFolder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Results may hold patients: the folder is its owner's alone, whatever the umask.
fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> RunId {
        RunId::new(name).unwrap()
    }

    /// Leaves a result of `run` at `target`.
    fn leave(target: &Path, name: &str, replace: Replace) -> Result<PathBuf, FolderError> {
        let folder = PendingFolder::begin(target, replace)?;
        let text = format!(r#"{{"run": "{name}", "job": "j", "files": ["result.json"]}}"#);
        fs::write(folder.path().join(RESULT_FILE), text).unwrap();
        folder.finish()
    }

    fn text(target: &Path) -> String {
        fs::read_to_string(target.join(RESULT_FILE)).unwrap()
    }

    #[test]
    fn an_unfinished_folder_leaves_nothing_and_an_earlier_result_untouched() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("run");
        for _ in 0..2 {
            leave(&target, "a1", Replace::Run(run("a1"))).unwrap();
        }
        drop(PendingFolder::begin(&target, Replace::Results).unwrap());
        assert!(text(&target).contains("a1"));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_results_of_another_run_are_replaced_only_where_that_is_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("run");
        fs::create_dir(home.path().join("run.old")).unwrap();
        fs::write(home.path().join("run.old/kept"), "mine").unwrap();
        leave(&target, "a1", Replace::Nothing).unwrap();
        for replace in [Replace::Nothing, Replace::Run(run("b2"))] {
            let error = leave(&target, "b2", replace).unwrap_err();
            assert!(matches!(error, FolderError::Other { .. }), "{error}");
            assert!(error.to_string().contains("run a1"), "{error}");
        }
        leave(&target, "b2", Replace::Results).unwrap();
        assert!(text(&target).contains("b2"));
        assert!(home.path().join("run.old/kept").exists());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_with_anything_else_is_never_replaced() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("run");
        leave(&target, "a1", Replace::Nothing).unwrap();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        for replace in [Replace::Run(run("a1")), Replace::Results] {
            let error = leave(&target, "a1", replace).unwrap_err();
            assert!(matches!(error, FolderError::Occupied { .. }), "{error}");
            assert!(error.to_string().contains("notes.txt"), "{error}");
        }
        let file = home.path().join("thesis");
        fs::write(&file, "mine").unwrap();
        let error = PendingFolder::begin(&file, Replace::Results).unwrap_err();
        assert!(matches!(error, FolderError::Occupied { .. }), "{error}");
    }

    #[test]
    fn results_are_kept_where_something_came_to_lie_in_their_place() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("run");
        let folder = PendingFolder::begin(&target, Replace::Nothing).unwrap();
        fs::write(folder.path().join(RESULT_FILE), "{}").unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("thesis.txt"), "mine").unwrap();
        let error = folder.finish().unwrap_err();
        assert!(matches!(error, FolderError::Late { .. }), "{error}");
        assert!(home.path().join("run.partial").join(RESULT_FILE).exists());
        assert!(target.join("thesis.txt").exists());
    }
}
