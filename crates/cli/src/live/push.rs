//! Profiles sent to a Pyroscope server as long as a program runs: CPU time, contention, allocations
//! and what lives, each as pprof to `POST /ingest` (facts: ecosystem.md, section 1).

use crate::exit::Usage;
use crate::output::note;
use anyhow::{Context, Result, bail};
use report::profile::pprof::write;
use server::explorer::params::Params;
use server::live::Live;
use server::live::clock::now_ms;
use server::live::doors::{answers, pprof};
use server::live::recording::measure::What;
use std::sync::Weak;
use std::time::Duration;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Flags of sending.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// With --record: send profiles to this Pyroscope server, for instance http://127.0.0.1:4040 (http
    /// only: for one that wants https, a proxy beside it)
    #[arg(long, value_name = "URL", requires = "record")]
    push: Option<String>,
    /// With --push: name and labels [default: the main class]
    #[arg(long, value_name = "NAME{LABEL=VALUE,...}", requires = "push")]
    push_name: Option<String>,
    /// With --push: seconds of each profile
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "push",
        default_value_t = 15,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    push_every: u64,
    /// With --push: the tenant (the header X-Scope-OrgID)
    #[arg(long, value_name = "ID", requires = "push")]
    push_tenant: Option<String>,
}

impl PushArgs {
    /// Looks at the address before anything is started.
    ///
    /// # Errors
    /// When profiles cannot be sent to such an address.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(url) = &self.push
            && !url.starts_with("http://")
        {
            let text = format!(
                "{url}: only http:// can be sent to (for https, a proxy beside it, such as pyroscope.receive_http of Alloy)"
            );
            return Err(Usage(text).into());
        }
        Ok(())
    }

    /// Sends as long as there is a page, on a thread of its own.
    pub(crate) fn start(&self, live: Weak<Live>) -> Result<()> {
        let Some(url) = &self.push else { return Ok(()) };
        let (args, url) = (self.clone(), url.trim_end_matches('/').to_owned());
        std::thread::Builder::new()
            .name("tenure-push".to_owned())
            .spawn(move || args.follow(&url, &live))?;
        Ok(())
    }

    fn follow(&self, url: &str, live: &Weak<Live>) {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
        let client = config.http_status_as_error(false).build().new_agent();
        let every = Duration::from_secs(self.push_every);
        let mut from = now_ms();
        // A fault is said once, not every time.
        let mut said = String::new();
        while let Some(live) = live.upgrade() {
            if live.status().borrow().ended {
                return;
            }
            let Ok(measured) = live.measure_for(&[What::Cpu, What::Contention], every) else {
                // The agent is not there yet, or gone.
                drop(live);
                std::thread::sleep(Duration::from_millis(500));
                continue;
            };
            let to = now_ms();
            let name = match &self.push_name {
                Some(name) => name.clone(),
                None => live.program().name(),
            };
            let send = |bytes: Vec<u8>| self.send(&client, url, (&name, from, to), &bytes);
            let range = Params::default().with("from", &from.to_string());
            let all = answers::range_profile(&live, &Params::default());
            let sent = send(write(&measured, &pprof::CPU))
                .and_then(|()| send(write(&measured, &pprof::BLOCK)))
                .and_then(|()| match answers::range_profile(&live, &range) {
                    Ok(range) => send(write(&range, &pprof::ALLOCS)),
                    Err(_) => Ok(()),
                })
                .and_then(|()| match &all {
                    Ok(all) => send(write(all, &pprof::HEAP)),
                    Err(_) => Ok(()),
                });
            let fault = sent.err().map(|error| format!("{error:#}"));
            let fault = fault.unwrap_or_default();
            if !fault.is_empty() && fault != said {
                note(&fault);
            }
            said = fault;
            from = to;
        }
    }

    fn send(
        &self,
        client: &ureq::Agent,
        url: &str,
        (name, from, to): (&str, u64, u64),
        profile: &[u8],
    ) -> Result<()> {
        let mut request = client
            .post(format!("{url}/ingest"))
            .query("name", name)
            .query("from", (from / 1000).to_string())
            .query("until", to.div_ceil(1000).to_string())
            .query("format", "pprof")
            .query("sampleRate", "100")
            .query("spyName", "tenure")
            .header("Content-Type", "application/octet-stream");
        if let Some(tenant) = &self.push_tenant {
            request = request.header("X-Scope-OrgID", tenant);
        }
        let answer = request.send(profile);
        let answer = answer.with_context(|| format!("profiles cannot be sent to {url}"))?;
        let status = answer.status();
        if !status.is_success() {
            bail!("{url} does not take profiles: {status}");
        }
        Ok(())
    }
}
