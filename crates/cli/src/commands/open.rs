//! `tenure open`.

use super::target::Dump;
use crate::Outcome;
use crate::exit::Exit;
use crate::output::note;
use crate::session::Session;
use anyhow::{Context, anyhow};
use hprof::source::split_number;
use report::Provenance;
use requests::Stage;
use server::explorer::{Explorer, router};
use server::{Config, start};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Explore a dump in the browser
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure open heap.hprof\n  tenure open --no-browser --port 7070 heap.hprof.gz\n  tenure open after.hprof --base before.hprof\n\nThe page is on 127.0.0.1 and needs the token in its address. The first histogram shows while the\nindex is being built. Ctrl-C ends."
)]
pub struct Args {
    #[command(flatten)]
    dump: Dump,
    /// An earlier dump of the same program: a page shows what grew since
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    base: Option<PathBuf>,
    /// Port on 127.0.0.1 [default: any free one]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
    /// Only print the address
    #[arg(long)]
    no_browser: bool,
}

impl Args {
    /// Serves until a signal.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        self.dump.refuse_missing()?;
        let file = &self.dump.file;
        let explorer = Explorer::open_renamed(file, session.options(), session.renaming()?);
        if let Some(base) = &self.base {
            let whole = split_number(base).0;
            File::open(whole).with_context(|| format!("cannot read {}", base.display()))?;
            explorer.compare_with(base);
        }
        let config = Config {
            port: self.port,
            signals: true,
            ..Config::default()
        };
        let running = start(router(Arc::clone(&explorer)), &config).context("tenure open")?;
        let url = running.url();
        session.write(format!("{url}\n").as_bytes())?;
        session.flush()?;
        let watcher = {
            let (explorer, stop) = (Arc::clone(&explorer), running.stopper());
            std::thread::spawn(move || watch(&explorer, &stop))
        };
        if !self.no_browser && !open_browser(&url) {
            note("no browser was found; open the address above");
        }
        running.wait();
        explorer.close();
        let failed = watcher.join().ok().flatten();
        if let Some(error) = failed {
            return Err(anyhow!(error));
        }
        Ok(match explorer.heap() {
            Ok(heap) => session.finish(&Provenance::of(heap.summary())),
            Err(_) => Exit::Ok,
        })
    }
}

/// Waits until the dump is open, or the server ends. A file that is no dump ends the server: there
/// is nothing to show.
fn watch(explorer: &Explorer, stop: &server::Stopper) -> Option<String> {
    let state = explorer.state();
    loop {
        let (stage, error) = {
            let now = state.borrow();
            (now.stage, now.error.clone())
        };
        match stage {
            Stage::Failed if !stop.is_stopped() => {
                stop.stop();
                return error;
            }
            Stage::Opening if !stop.is_stopped() => std::thread::sleep(Duration::from_millis(50)),
            _ => return None,
        }
    }
}

/// Starts the system's browser and does not wait for it.
pub(crate) fn open_browser(url: &str) -> bool {
    let openers: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["open"]]
    } else if cfg!(windows) {
        &[&["rundll32", "url.dll,FileProtocolHandler"]]
    } else {
        &[&["xdg-open"], &["gio", "open"], &["wslview"]]
    };
    openers.iter().any(|opener| {
        Command::new(opener[0])
            .args(&opener[1..])
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .is_ok()
    })
}
