//! Completions and man pages, which clap makes of the command line itself.

use clap::{Args, Command};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::PathBuf;

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

impl Completions {
    /// The script by which the shell completes the program's command line.
    #[must_use]
    pub fn script(&self, mut program: Command) -> String {
        let name = program.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, name, &mut script);
        String::from_utf8_lossy(&script).into_owned()
    }
}

/// `man`.
#[derive(Debug, Args)]
pub struct ManPages {
    /// Folder for one page per command
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

impl ManPages {
    /// Writes a page for the program and one for each of its commands; gives their paths.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn write(&self, program: Command) -> io::Result<Vec<PathBuf>> {
        fs::create_dir_all(&self.out)?;
        clap_mangen::generate_to(program.clone(), &self.out)?;
        let mut names = Vec::new();
        pages(&program, "", &mut names);
        Ok(names.iter().map(|name| self.out.join(name)).collect())
    }
}

/// The files of a command and of all below it.
fn pages(command: &Command, above: &str, names: &mut Vec<String>) {
    let name = match above {
        "" => command.get_name().to_owned(),
        above => format!("{above}-{}", command.get_name()),
    };
    names.push(format!("{name}.1"));
    let below = command.get_subcommands();
    below
        .filter(|one| !one.is_hide_set())
        .for_each(|one| pages(one, &name, names));
}
