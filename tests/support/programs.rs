//! Where the programs are, and processes that never outlive a test.

use crate::processors::of_sites;
use crate::results::names;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// No wait of a test is longer.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The coordinator's program.
pub fn coordinator() -> PathBuf {
    program("kindred-coordinator")
}

/// The site agent's program.
pub fn site_agent() -> PathBuf {
    program("kindred-site-agent")
}

/// A program that shows the library alone.
pub fn example(name: &str) -> PathBuf {
    program(&format!("examples/{name}"))
}

/// The agents of a simulation.
fn of_simulations(arguments: &[&str]) -> Vec<PathBuf> {
    let is_named = arguments.contains(&"--site-agent") || arguments.contains(&"--stop");
    match arguments.first() {
        Some(&"simulate") if !is_named => vec!["--site-agent".into(), of_sites(&site_agent())],
        _ => Vec::new(),
    }
}

/// A program of this workspace: this test lies in `target/<profile>/deps`, the programs above it.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("a test lies in target/<profile>/deps");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "found no {}; `cargo build --workspace --all-targets` makes it",
        path.display()
    );
    path
}

/// A test's own folder; `temp` in it is the temporary folder of every program that it starts.
pub struct Home(tempfile::TempDir);

impl Home {
    /// An empty folder, which goes when the test lets go of it.
    #[allow(clippy::new_without_default)] // a folder on the disk is no default value
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("test-of-kindred-")
            .tempdir()
            .expect("a temporary folder");
        fs::create_dir(folder.path().join("temp")).expect("a folder in it");
        Self(folder)
    }

    /// A folder with synthetic patients of `sites`, as `north=130,south=90`, in its folder `data`.
    pub fn with_patients(sites: &str) -> Self {
        Self::synthesised(&["--sites", sites])
    }

    /// The same, with an outcome that is a class, a number or a survival time.
    pub fn with_outcome(sites: &str, outcome: &str) -> Self {
        Self::synthesised(&["--sites", sites, "--outcome", outcome])
    }

    fn synthesised(arguments: &[&str]) -> Self {
        let home = Self::new();
        let all = [&["synthesise", "--out", "data"], arguments].concat();
        home.run(&site_agent(), &all).must_succeed();
        home
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, with the folders above it; gives its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("a folder for a file");
        }
        fs::write(&path, text).expect("a file");
        path
    }

    /// A command whose relative paths and temporary files are in this folder.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = match program == site_agent() {
            true => Command::new(of_sites(program)),
            false => Command::new(program),
        };
        command
            .current_dir(self.path())
            .env("TMPDIR", self.join("temp"))
            .env_remove("KINDRED_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> Ran {
        let mut command = self.command(program);
        ran(command.args(arguments).args(of_simulations(arguments)))
    }

    /// Simulates `job.toml` on the tables of `data` by `policy.toml`, into `out`.
    pub fn simulate(&self, options: &[&str]) -> Ran {
        let mut arguments = vec!["simulate", "job.toml", "--data", "data"];
        arguments.extend(["--policy", "policy.toml", "--out", "out"]);
        arguments.extend(options);
        self.run(&coordinator(), &arguments)
    }

    /// Starts a command whose standard error goes to the file `name`.log.
    pub fn start(&self, name: &str, program: &Path, arguments: &[&str]) -> Process {
        let log = self.join(&format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log file");
        let child = self
            .command(program)
            .args(arguments)
            .args(of_simulations(arguments))
            .stdout(file.try_clone().expect("a second handle of the log"))
            .stderr(file)
            .spawn()
            .expect("the program starts");
        Process {
            child,
            log,
            name: name.to_owned(),
        }
    }

    /// Everything directly in this folder, sorted, without the temporary folder.
    pub fn left(&self) -> Vec<String> {
        names(self.path())
            .into_iter()
            .filter(|name| name != "temp")
            .collect()
    }

    /// What the programs left in their temporary folder.
    pub fn left_in_temp(&self) -> Vec<String> {
        names(&self.join("temp"))
    }

    /// Command lines of live programs of ours that name this folder.
    pub fn processes(&self) -> Vec<String> {
        self.programs().map(|(_, line)| line).collect()
    }

    /// Kills the programs of ours whose command lines name this folder and `part`; gives how many.
    pub fn kill_process_with(&self, part: &str) -> usize {
        let found: Vec<_> = self
            .programs()
            .filter(|(_, line)| line.contains(part))
            .collect();
        for (id, _) in &found {
            send(Signal::Kill, *id);
        }
        found.len()
    }

    /// Numbers and command lines.
    fn programs(&self) -> impl Iterator<Item = (u32, String)> {
        let own = self.path().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (line.contains("kindred-") && line.contains(&own)).then_some((id, line))
        })
    }
}

/// A program that ran to its end.
pub struct Ran {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// All that it wrote to its standard output.
    pub stdout: String,
    /// All that it wrote to its standard error.
    pub stderr: String,
}

impl Ran {
    /// Ended with code 0.
    #[track_caller]
    pub fn must_succeed(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// Ended with `code`, and its standard error holds every one of `wanted`.
    #[track_caller]
    pub fn must_fail(self, code: i32, wanted: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        for text in wanted {
            assert!(
                self.stderr.contains(text),
                "wanted {text:?} in:\n{}",
                self.stderr
            );
        }
        self
    }
}

/// Runs a command to its end.
pub fn ran(command: &mut Command) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    Ran {
        code: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A signal, by its name in POSIX.
#[derive(Clone, Copy)]
pub enum Signal {
    /// SIGINT, as of Ctrl-C.
    Interrupt,
    /// SIGHUP, as a supervisor sends it to have files read again.
    Hangup,
    /// SIGTERM, as a supervisor sends it.
    Terminate,
    /// SIGKILL, which no process survives.
    Kill,
    /// SIGSTOP: the process stands still.
    Stop,
    /// SIGCONT: it goes on.
    Continue,
}

/// A program that runs, and is killed when the test lets go of it.
pub struct Process {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Process {
    /// What it has written so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Bytes of its memory that are resident.
    pub fn resident_bytes(&self) -> u64 {
        self.bytes("VmRSS:")
    }

    /// The most bytes of its memory that were resident since it began, or since [`Self::forget_peak`].
    pub fn peak_bytes(&self) -> u64 {
        self.bytes("VmHWM:")
    }

    /// Has the peak of its memory begin anew.
    pub fn forget_peak(&self) {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        fs::write(&path, "5").unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Seconds in which a processor worked for it.
    pub fn busy_seconds(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let (_, after_name) = stat.rsplit_once(')').expect("a name in brackets");
        let times = after_name.split_whitespace().skip(11).take(2);
        // In hundredths, as Linux counts for programs.
        times.filter_map(|one| one.parse::<f64>().ok()).sum::<f64>() / 100.0
    }

    /// What the system says of its memory under this name.
    fn bytes(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        1024 * kib.unwrap_or(0_u64)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        assert!(
            send(signal, self.child.id()),
            "{} was not there any more",
            self.name
        );
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) {
        self.signal(Signal::Kill);
        self.child.wait().expect("a killed process ends");
    }

    /// How it ended; none while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be asked")
    }

    /// Waits until it ends; gives its exit code.
    #[track_caller]
    pub fn wait(&mut self) -> Option<i32> {
        let what = format!("{} to end", self.name);
        let status = until(&what, PATIENCE, || self.ended());
        status.code()
    }

    /// Waits until its log holds `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let what = format!("{text:?} in the log of {}", self.name);
        until(&what, PATIENCE, || {
            let found = self.log().contains(text);
            assert!(
                found || self.ended().is_none(),
                "{} ended:\n{}",
                self.name,
                self.log()
            );
            found.then_some(())
        });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("log of {}:\n{}", self.name, self.log());
        }
    }
}

/// Sends a signal; false where there is no such process.
fn send(signal: Signal, process: u32) -> bool {
    let name = match signal {
        Signal::Interrupt => "INT",
        Signal::Hangup => "HUP",
        Signal::Terminate => "TERM",
        Signal::Kill => "KILL",
        Signal::Stop => "STOP",
        Signal::Continue => "CONT",
    };
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {process}")])
        .status();
    status.expect("a shell").success()
}

/// Looks until `condition` gives something.
#[track_caller]
pub fn until<T>(what: &str, patience: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(began.elapsed() < patience, "waited in vain for {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}
