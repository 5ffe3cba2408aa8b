//! Which configuration a command uses where its line names none.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use std::env;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Names the configuration where no option does: a file, or a folder with files of the usual names.
const NAMED: &str = "KINDRED_CONFIG";
/// The folder of all users.
const SYSTEM: &str = "/etc/kindred";

/// A kind of configuration.
pub trait Configured: Clone + Send + Sync + 'static {
    /// The usual name of its file.
    const FILE: &'static str;
    /// What `--config` is, in a help text.
    const HELP: &'static str;
}

/// Nobody has named a configuration, and none lies where it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoConfig {
    looked: Vec<PathBuf>,
}

impl fmt::Display for NoConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let looked: Vec<String> = self
            .looked
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        write!(
            formatter,
            "found no --config, wanted it, or the file's name in {NAMED}, or one of {}",
            looked.join(", ")
        )
    }
}

impl std::error::Error for NoConfig {}

/// The configuration of this usual name: as `KINDRED_CONFIG` names it, else of this user, else of all.
///
/// # Errors
/// [`NoConfig`] where there is none.
pub fn find(file: &str) -> Result<PathBuf, NoConfig> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = set(NAMED).map(PathBuf::from) {
        return Ok(match named.is_dir() {
            true => named.join(file),
            false => named,
        });
    }
    let own = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")));
    let own = own.map(|folder| folder.join("kindred"));
    let folders = own.into_iter().chain([PathBuf::from(SYSTEM)]);
    let looked: Vec<PathBuf> = folders.map(|folder| folder.join(file)).collect();
    let found = looked.iter().find(|path| path.exists()).cloned();
    found.ok_or(NoConfig { looked })
}

/// `--config`, or the configuration that lies where it usually does.
#[derive(Debug, Clone)]
pub struct ConfigFile<K> {
    path: PathBuf,
    kind: PhantomData<K>,
}

impl<K> Deref for ConfigFile<K> {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl<K: Configured> Args for ConfigFile<K> {
    fn augment_args(command: Command) -> Command {
        let argument = Arg::new("config").long("config").value_name("FILE");
        let argument = argument.value_parser(value_parser!(PathBuf));
        command.arg(argument.help(K::HELP))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: Configured> FromArgMatches for ConfigFile<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = matches.get_one::<PathBuf>("config").cloned();
        let path = given.map_or_else(|| find(K::FILE), Ok);
        let absent = |none: NoConfig| Error::raw(ErrorKind::MissingRequiredArgument, none);
        Ok(path.map_err(absent)?.into())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<K> From<PathBuf> for ConfigFile<K> {
    /// The configuration in this file.
    fn from(path: PathBuf) -> Self {
        Self {
            path,
            kind: PhantomData,
        }
    }
}
