//! Promise: what `deploy/` holds works as it lies there. Samples, jobs, policies, services and the
//! commands of its page are read by the parsers that the programs use.

use crate::prose::pages;
use clap::CommandFactory;
use coordinator::config::{CoordinatorConfig, OperatorConfig, StoreConfig};
use kindred_tests::workspace::{files, root, text};
use privacy::{Limits, Policy};
use protocol::job::Job;
use protocol::method::Method;
use service::secret::Password;
use site_agent::config::{Query, SiteConfig, SourceKind, policy};
use std::fmt::Display;
use std::path::{Path, PathBuf};

#[track_caller]
fn read<T, E: Display>(path: &Path, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn site(name: &str) -> SiteConfig {
    let path = root().join("deploy/config").join(name);
    read(&path, SiteConfig::open(&path))
}

#[test]
fn every_file_of_deploy_is_read_by_the_parser_that_a_program_uses() {
    let mut paths = files("deploy", &["toml"]);
    // pip reads it, in the package's own tests.
    paths.retain(|path| !path.ends_with("python/pyproject.toml"));
    assert!(paths.len() >= 9, "found only {paths:?}");
    for path in paths {
        let file = root().join(&path);
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.ends_with(".study.toml") {
            read(&path, wire::jobs::draft(&file));
        } else if path.starts_with("deploy/jobs") {
            let joined = read(&path, wire::jobs::with_draft(&file, text(&path)));
            read(&path, Job::parse(&joined));
        } else if path.starts_with("deploy/policies") {
            read(&path, policy::parse(&text(&path)));
        } else if name.starts_with("site") {
            read(&path, SiteConfig::open(&file));
        } else if name.starts_with("coordinator") {
            read(&path, CoordinatorConfig::open(&file));
        } else if name.starts_with("operator") {
            read(&path, OperatorConfig::open(&file));
        } else {
            panic!("{} is read by no test", path.display());
        }
    }
}

#[test]
fn the_samples_say_what_their_comments_say() {
    let folder = root().join("deploy/config");
    let path = folder.join("coordinator.toml");
    let coordinator = read(&path, CoordinatorConfig::open(&path));
    assert_eq!(coordinator.listen.port(), 7443);
    assert_eq!(
        coordinator.folder,
        Path::new("/var/lib/kindred-coordinator")
    );
    assert_eq!(coordinator.tls.key, folder.join("certificates/key.pem"));
    let mut is_store = false;
    let opened = text("deploy/config/coordinator.toml");
    let opened = opened.lines().map(|line| {
        is_store = line.starts_with("# [store]") || is_store && !line.is_empty();
        let line = line.strip_prefix("# ").filter(|_| is_store).unwrap_or(line);
        format!("{line}\n")
    });
    let opened = CoordinatorConfig::parse(&opened.collect::<String>(), &folder);
    let StoreConfig::Postgres(server) = read(&path, opened).store else {
        panic!("found SQLite, wanted PostgreSQL");
    };
    assert_eq!(
        server.to_string(),
        "database kindred at database.example:5432"
    );
    assert_eq!(coordinator.store, StoreConfig::Sqlite);
    let path = folder.join("operator.toml");
    let operator = read(&path, OperatorConfig::open(&path));
    assert_eq!(operator.coordinator.to_string(), "coordinator.example:7443");

    let north = site("site.toml");
    assert_eq!(north.coordinator.to_string(), "coordinator.example:7443");
    assert_eq!(north.tls.authority, folder.join("certificates/ca.pem"));
    let SourceKind::Csv(csv) = &north.source.kind else {
        panic!("found {:?}, wanted a CSV file", north.source.kind);
    };
    assert_eq!(
        (csv.delimiter, &csv.path),
        (b';', &folder.join("patients.csv"))
    );
    let chol = &north.source.columns["chol"];
    assert_eq!(
        (chol.column.as_deref(), chol.unit.as_deref()),
        (Some("CHOLESTEROL"), Some("mmol/l"))
    );

    let south = site("site-postgres.toml");
    let SourceKind::Postgres(postgres) = &south.source.kind else {
        panic!("found {:?}, wanted PostgreSQL", south.source.kind);
    };
    assert_eq!(
        (postgres.server.port, postgres.server.user.as_str()),
        (5_432, "kindred_reader")
    );
    assert_eq!(
        postgres.server.password,
        Some(Password::File(folder.join("database-password")))
    );
    assert!(
        matches!(&postgres.query, Query::Text(query) if query.starts_with("SELECT patient_id"))
    );
}

#[test]
fn a_sample_site_takes_the_job_of_its_operator_and_opens_what_its_method_tells() {
    let job = "name = 'lipids'\nmethod = 'unpsl'\nsites = ['north', 'south', 'east']\n\
        [outcome]\ncolumn = 'num'\nkind = 'binary'\npositive = ['1']\n\
        [[features]]\nname = 'chol'\nkind = 'numeric'\nunit = 'mg/dl'\n\
        [unpsl]\nrank = 1\n";
    let job = Job::parse(job).expect("a whole job");
    for name in ["site.toml", "site-postgres.toml"] {
        let policy: Policy = site(name).policy;
        let opened = ["second_moments", "pair_sums"]
            .map(|rule| format!("{rule} is true, where it is false unless set."));
        assert_eq!(policy.lowered(), opened, "{name}");
        let used = Limits::default();
        let admits = |operator| policy.admit(&job.facts(operator), &used).is_ok();
        assert!(admits("researcher") && !admits("another"), "{name}");
    }
}

/// The command of a line, read by the command line of its program. None where it is of neither.
fn command(line: &str) -> Option<Result<(), clap::Error>> {
    let mut words = line.split_whitespace().peekable();
    let program = Path::new(words.peek()?).file_name()?.to_str()?;
    let program = match program {
        "kindred-coordinator" => coordinator::cli::Cli::command(),
        "kindred-site-agent" => site_agent::cli::Cli::command(),
        _ => return None,
    };
    // Where its configuration lies is this machine's own.
    Some(program.try_get_matches_from(words).map(drop))
}

/// The lines of a page's shell blocks that call one of the programs: continued lines joined, without comments and the
/// folder of the program.
fn commands(page: &Path) -> Vec<String> {
    let page = text(page).replace("\\\n", " ");
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .flat_map(str::lines)
        .map(|line| line.trim().trim_start_matches("target/debug/"))
        .filter(|line| line.starts_with("kindred-"))
        .map(|line| line.split(" #").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn every_command_of_the_pages_is_one_of_the_programs() {
    let mut found = 0;
    for path in pages() {
        let page = path.display();
        let commands = commands(&path);
        found += commands.len();
        for line in commands {
            match command(&line) {
                Some(parsed) => parsed.unwrap_or_else(|error| panic!("{page}: {line}\n{error}")),
                None => panic!("{page}: {line}: found neither program"),
            }
        }
    }
    assert!(found >= 60, "found only {found} commands");
    assert!(command("kindred-site-agent serve --confg site.toml").is_some_and(|one| one.is_err()));
}

/// That links lead somewhere is a promise of `prose`.
#[test]
fn the_pages_link_every_sample() {
    let mut links = Vec::new();
    for path in files("deploy", &["md"]) {
        let page = text(&path);
        let folder = path.parent().expect("a folder");
        for (at, _) in page.match_indices("](") {
            links.push(folder.join(page[at + 2..].split(')').next().unwrap_or_default()));
        }
    }
    let folders = ["deploy/config", "deploy/jobs", "deploy/systemd"];
    for path in folders
        .iter()
        .flat_map(|folder| files(folder, &["toml", "service"]))
    {
        assert!(links.contains(&path), "{} is on no page", path.display());
    }
}

/// The TOML of a page, block by block.
fn blocks(page: &Path) -> Vec<String> {
    let page = text(page);
    let blocks = page.split("```toml\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next().map(str::to_owned))
        .collect()
}

/// A block of a page on a method as a whole job: what a job needs besides is put before it.
fn whole(method: &str, block: &str) -> String {
    if block.contains("study = ") {
        return block.replace("heart.study.toml", "heart-disease.study.toml");
    }
    if block.contains("[[features]]") {
        return format!("{block}\n[unpsl]\nrank = 1\n");
    }
    let mut job = "name = 'page'\nsites = ['north', 'south', 'east']\n".to_owned();
    if !block.contains("method = ") {
        job.push_str(&format!("method = '{method}'\n"));
    }
    let (keys, tables) = block.split_at(block.find('[').unwrap_or(block.len()));
    job.push_str(keys);
    job.push_str("[outcome]\ncolumn = 'num'\nkind = 'binary'\npositive = ['1']\n");
    for feature in 1..=8 {
        job.push_str(&format!(
            "[[features]]\nname = 'x{feature}'\nkind = 'numeric'\nrange = [0, 1]\n"
        ));
    }
    job + tables
}

#[test]
fn every_key_of_the_pages_is_one_of_a_job_or_a_study() {
    let mut found = 0;
    for path in files("deploy/jobs", &["md"]) {
        let method = path.file_stem().and_then(|name| name.to_str()).unwrap();
        // What a page shows of a study or of site.toml is not of a job.
        let is_job = |block: &String| {
            let table = format!("[{method}]");
            method == "README" || block.contains(&table) || block.contains("study = ")
        };
        for block in blocks(&path).into_iter().filter(is_job) {
            let job = whole(method, &block);
            let joined = wire::jobs::with_draft(&root().join("deploy/jobs/page.toml"), job);
            read(&path, Job::parse(&read(&path, joined)));
            found += 1;
        }
    }
    assert!(found >= 8, "found only {found} jobs");
    let page = Path::new("deploy/study.md");
    let [study, job] = <[String; 2]>::try_from(blocks(page)).expect("a study and a job");
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("heart.study.toml");
    std::fs::write(&file, study).unwrap();
    read(page, wire::jobs::draft(&file));
    let joined = wire::jobs::with_draft(&home.path().join("job.toml"), job);
    read(page, Job::parse(&read(page, joined)));
}

#[test]
fn every_method_has_a_page_in_the_list_of_methods_and_in_the_book() {
    let (list, book) = (text("deploy/jobs/README.md"), text("book/SUMMARY.md"));
    for name in Method::NAMES {
        assert!(!text(format!("deploy/jobs/{name}.md")).is_empty(), "{name}");
        assert!(
            list.contains(&format!("| [`{name}`]({name}.md) | ")),
            "{name}"
        );
        assert!(
            book.contains(&format!("](deploy/jobs/{name}.md)")),
            "{name}"
        );
    }
}

/// The values of a key of a service file, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(found, _)| *found == key)
        .map(|(_, value)| value)
        .collect()
}

#[test]
fn each_service_starts_its_program_on_its_sample_and_may_write_to_its_folder_alone() {
    let agent = site("site.toml");
    let path = root().join("deploy/config/coordinator.toml");
    let coordinator = read(&path, CoordinatorConfig::open(&path));
    // An enrolment writes next to the coordinator's configuration.
    let of_coordinator = "/var/lib/kindred-coordinator/coordinator.toml";
    let of_site = ["kindred-site-agent", "/etc/kindred/site.toml"];
    for (unit, [name, config], command_name, folder) in [
        (
            "kindred-coordinator",
            ["kindred-coordinator", of_coordinator],
            "serve",
            &coordinator.folder,
        ),
        ("kindred-site-agent", of_site, "serve", &agent.folder),
        ("kindred-site-agent-pages", of_site, "pages", &agent.folder),
    ] {
        let unit = text(Path::new("deploy/systemd").join(format!("{unit}.service")));
        let start = format!("/usr/bin/{name} {command_name} --config {config}");
        assert_eq!(values(&unit, "ExecStart"), [start.as_str()]);
        assert!(
            command(&start).is_some_and(|parsed| parsed.is_ok()),
            "{start}"
        );
        let state = values(&unit, "StateDirectory");
        assert_eq!(&Path::new("/var/lib").join(state[0]), folder);
        for (key, wanted) in [
            ("User", name),
            ("StateDirectoryMode", "0700"),
            ("UMask", "0077"),
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("ProtectHome", "yes"),
            ("PrivateTmp", "yes"),
            ("CapabilityBoundingSet", ""),
        ] {
            assert_eq!(values(&unit, key), [wanted], "{name}: {key}");
        }
        assert!(values(&unit, "ReadWritePaths").is_empty(), "{name}");
    }
}

#[test]
fn each_service_and_sample_is_in_a_package() {
    let packages = ["coordinator", "site-agent"].map(|crate_name| {
        let manifest = text(Path::new(crate_name).join("Cargo.toml"));
        let from = manifest.find("[package.metadata.deb]");
        manifest[from.expect("a package")..].to_owned()
    });
    let packaged = |what: &str| packages.iter().any(|one| one.contains(what));
    for (folder, named) in [
        ("systemd", "unit-name = \""),
        ("config", "../deploy/config/"),
    ] {
        let files = std::fs::read_dir(root().join("deploy").join(folder)).expect(folder);
        for file in files {
            let path = file.expect(folder).path();
            let name = match folder {
                "systemd" => path.file_stem(),
                _ => path.file_name(),
            };
            let name = name.expect(folder).to_string_lossy();
            assert!(packaged(&format!("{named}{name}\"")), "{name}");
        }
    }
}

#[test]
fn no_service_is_started_again_after_a_fault_that_only_people_can_mend() {
    let never = |name: &str| {
        let unit = text(Path::new("deploy/systemd").join(name));
        values(&unit, "RestartPreventExitStatus").join(" ")
    };
    let (usage, books) = (
        coordinator::exit::Exit::Usage as u8,
        coordinator::exit::Exit::Books as u8,
    );
    assert_eq!(
        never("kindred-coordinator.service"),
        format!("{usage} {books}")
    );
    let (usage, books) = (
        site_agent::exit::Exit::Usage as u8,
        site_agent::exit::Exit::Books as u8,
    );
    for name in [
        "kindred-site-agent.service",
        "kindred-site-agent-pages.service",
    ] {
        assert_eq!(never(name), format!("{usage} {books}"));
    }
}

#[test]
fn the_containers_fit_the_toolchain_the_programs_and_the_samples() {
    let dockerfile = text("deploy/compose/Dockerfile");
    let toolchain = text("rust-toolchain.toml");
    let channel = toolchain.split('"').nth(1).expect("a channel");
    let stages: Vec<_> = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("FROM "))
        .collect();
    assert_eq!(
        stages,
        [
            format!("rust:{channel}-slim-bookworm AS build"),
            "debian:bookworm-slim".to_owned()
        ]
    );
    assert!(dockerfile.contains(&format!("ENV RUSTUP_TOOLCHAIN={channel}\n")));
    assert!(dockerfile.contains(" libopenblas0 "));
    let compose = text("deploy/compose/compose.yaml");
    for (name, config) in [
        ("kindred-coordinator", "coordinator.toml"),
        ("kindred-site-agent", "site.toml"),
    ] {
        assert!(
            dockerfile.contains(&format!("/source/target/release/{name} ")),
            "{name}"
        );
        assert!(compose.contains(&format!(":/var/lib/{name}\n")), "{name}");
        let line = compose
            .lines()
            .find_map(|line| line.trim().strip_prefix(&format!("command: [{name}, ")))
            .expect("a command of the program");
        let line = format!("{name} {}", line.trim_end_matches(']').replace(", ", " "));
        assert!(
            command(&line).is_some_and(|parsed| parsed.is_ok()),
            "{line}"
        );
        assert!(line.ends_with(&format!("/etc/kindred/{config}")), "{line}");
    }
    let listen = site("site.toml").coordinator.to_string();
    let port = listen.rsplit(':').next().unwrap_or_default();
    assert!(
        compose.contains(&format!("ports: [\"{port}:{port}\"]")),
        "{port}"
    );
    let ignored: PathBuf = root().join("deploy/compose/Dockerfile.dockerignore");
    assert!(
        ignored.is_file(),
        "the image would be sent the folder of builds"
    );
}

#[test]
fn the_chart_fits_the_image_the_program_and_the_samples() {
    let chart = text("deploy/helm/Chart.yaml");
    let version = format!("appVersion: \"{}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(chart.contains(&version), "wanted {version}");
    let pods = text("deploy/helm/templates/coordinators.yaml");
    let dockerfile = text("deploy/compose/Dockerfile");
    let user = dockerfile.split("USER ").nth(1).expect("a user");
    let (user, _) = user.split_once(':').expect("a user and a group");
    for key in ["runAsUser", "runAsGroup", "fsGroup"] {
        assert!(pods.contains(&format!("{key}: {user}\n")), "{key}: {user}");
    }
    let line = pods
        .lines()
        .find_map(|line| line.trim().strip_prefix("command: [kindred-"));
    let line = line.expect("a command").trim_end_matches(']');
    let line = format!("kindred-{}", line.replace(", ", " "));
    assert!(
        command(&line).is_some_and(|parsed| parsed.is_ok()),
        "{line}"
    );
    let listen = site("site.toml").coordinator.port();
    let wanted = format!("containerPort: {listen}");
    assert!(pods.contains(&wanted), "{wanted}");
}
