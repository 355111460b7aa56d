//! `tenure collectors`.

use super::events::write_page;
use super::target::limit;
use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::live::front_end::FrontEnd;
use crate::output::note;
use crate::output_file::write_file;
use crate::session::Session;
use anyhow::{Context, Result};
use live_heap::Replay;
use refheap::jvmpi::{self, Agent};
use refheap::{Config, Gc, Order, RefVm, Script, script};
use report::events::{CollectorsJson, Run, compare_doc, compare_page, doc, page};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use vmpi::mode::Request;
use vmpi::wire::{Encoder, Item};
use vmpi::{Body, DumpLevel, GcKind, Switches};

/// Compare five garbage collectors: one script, the events of each and their cost
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure collectors --script mutator.heap -o collectors.html\n  tenure collectors --gc generational --promotion-age 2 --record run.vmpi\n  tenure collectors --gc mark_sweep --agent ./libagent.so:file=out.txt"
)]
pub struct Args {
    /// One of mark_sweep, mark_compact, two_space_copying, generational, reference_counting
    /// [default: all five]
    #[arg(long, value_name = "NAME")]
    gc: Option<Gc>,
    /// Script (docs/reference/collectors.md) [default: a built-in script]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    script: Option<PathBuf>,
    /// Bytes of memory for objects
    #[arg(long, value_name = "SIZE", value_parser = crate::args::parse_size, default_value = "32k")]
    heap: u64,
    /// For mark_compact: sliding, arbitrary, linearizing
    #[arg(long, value_name = "ORDER", default_value = "sliding")]
    order: Order,
    /// Generations of the generational collector, 2 to 8
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=8))]
    generations: u32,
    /// Collections survived before promotion
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    promotion_age: u32,
    /// Let reference_counting detect cycles
    #[arg(long)]
    cycle_detector: bool,
    /// Classes and sites, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
    /// List every event instead (with --gc)
    #[arg(long, requires = "gc", conflicts_with_all = ["output", "record"])]
    events: bool,
    /// Write the events for `tenure events` (with --gc)
    #[arg(long, value_name = "PATH", requires = "gc", value_hint = clap::ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Send the events to `tenure listen` and take its commands (with --gc)
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "gc",
        conflicts_with = "events"
    )]
    net: Option<String>,
    /// Let a JVMPI agent watch the VM (with --gc)
    #[arg(
        long,
        value_name = "LIB[:OPTIONS]",
        requires = "gc",
        conflicts_with = "events"
    )]
    agent: Option<String>,
    /// Write an HTML page
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// What one run left.
struct Ran {
    stream: Vec<u8>,
    lines: Vec<String>,
    steps: u64,
    freed_singly: u64,
    stopped: Option<String>,
    /// The exit code with which an agent ended the VM.
    exit_code: Option<i32>,
}

/// Loads `LIB[:OPTIONS]`: a file, or the name of one that the system finds.
fn load(text: &str) -> Result<Agent> {
    let (library, options) = text.split_once(':').unwrap_or((text, ""));
    let path = match std::fs::canonicalize(library) {
        Ok(path) => path,
        Err(_) if library.contains('/') => PathBuf::from(library),
        Err(_) => PathBuf::from(format!("lib{library}.so")),
    };
    jvmpi::load(&path, options).with_context(|| library.to_owned())
}

impl Args {
    /// Runs the script and says what happened.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let (name, text) = match &self.script {
            None => ("the default script".to_owned(), script::DEFAULT.to_owned()),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
                (name, text)
            }
        };
        let script: Script = text
            .parse()
            .map_err(|error| Usage(format!("{name}: {error}")))?;
        if self.events && session.global.json {
            let why = "--events prints lines of text; --record FILE, then tenure events FILE --json, is JSON";
            return Err(Usage(why.to_owned()).into());
        }
        let gcs = self.gc.map_or(Gc::ALL.to_vec(), |gc| vec![gc]);
        let top = limit(self.limit, session.is_data(), 20).unwrap_or(usize::MAX);
        let mut agent = self.agent.as_deref().map(load).transpose()?;
        let mut exit_code = None;
        let inputs: Vec<&Path> = self.script.iter().map(|path| &**path).collect();
        let mut runs = Vec::new();
        for gc in gcs {
            let ran = self.perform(gc, &script, agent.take())?;
            exit_code = exit_code.or(ran.exit_code);
            if self.events {
                return list_events(session, &ran);
            }
            if let Some(path) = &self.record {
                write_file(path, session.global.force, &inputs, &ran.stream)?;
                note(&format!("wrote {}", path.display()));
            }
            runs.push(answer(gc, ran, top)?);
        }
        let page = |runs: &[Run]| match runs {
            [one] => page(
                &format!("{name}, {}", one.collector),
                &one.events,
                one.stopped.as_deref(),
            ),
            all => compare_page(&name, all),
        };
        if let Some(path) = &self.output {
            write_page(session, path, &inputs, &page(&runs))?;
        }
        if session.is_data() || self.output.is_none() {
            session.say_value(&CollectorsJson::new(&runs), || match &runs[..] {
                [one] => doc(&one.events, one.stopped.as_deref()),
                all => compare_doc(all),
            })?;
        }
        if let Some(code) = exit_code {
            return Ok(Exit::Program(code as u8));
        }
        let stopped = runs.iter().any(|run| run.stopped.is_some());
        Ok(if stopped { Exit::No } else { Exit::Ok })
    }

    fn config(&self, gc: Gc) -> Config {
        Config {
            gc,
            heap: self.heap,
            order: self.order,
            generations: self.generations,
            promotion_age: self.promotion_age,
            cycle_detector: self.cycle_detector,
        }
    }

    fn perform(&self, gc: Gc, script: &Script, agent: Option<Agent>) -> Result<Ran> {
        let config = self.config(gc);
        let mut front_end = self.net.as_deref().map(FrontEnd::connect).transpose()?;
        let encoder = RefCell::new(Encoder::new(&RefVm::hello(&config)));
        let lines = RefCell::new(Vec::new());
        let freed = Cell::new(0);
        let sink = |env, item: &Item| {
            if let Item::Event {
                body: Body::ObjectFree { .. },
                ..
            } = item
            {
                freed.set(freed.get() + 1);
            }
            if self.events {
                lines.borrow_mut().push(report::events::line(env, item));
            }
            encoder.borrow_mut().item(env, item);
        };
        let mut vm = RefVm::watched(config, Switches::all(), Box::new(sink), agent);
        let end = script::run_between(script, &mut vm, |vm| {
            if let Some(front_end) = &mut front_end {
                front_end.serve(vm, &encoder);
            }
        });
        if vm.exit_code().is_none() {
            // After a last collection, a dump shows what is there although nothing
            // reaches it.
            vm.collect(GcKind::Full);
            vm.request_to_sink(Request::HeapDump(DumpLevel::References));
            if let Some(front_end) = &mut front_end {
                front_end.serve_to_the_end(&mut vm, &encoder);
            }
        }
        vm.shut_down();
        let exit_code = vm.exit_code();
        drop(vm);
        let encoder = encoder.into_inner();
        Ok(Ran {
            stream: match front_end {
                Some(front_end) => front_end.finish(encoder),
                None => encoder.finish(),
            },
            lines: lines.into_inner(),
            steps: end.as_ref().map_or(0, |end| end.steps),
            freed_singly: freed.get(),
            stopped: end.err().map(|error| error.to_string()),
            exit_code,
        })
    }
}

fn list_events(session: &Session, ran: &Ran) -> Outcome {
    for line in &ran.lines {
        session.write(report::escape::visible(line).as_bytes())?;
        session.write(b"\n")?;
    }
    match &ran.stopped {
        None => Ok(Exit::Ok),
        Some(fault) => {
            note(fault);
            Ok(Exit::No)
        }
    }
}

fn answer(gc: Gc, ran: Ran, top: usize) -> Result<Run> {
    let mut replay = Replay::new();
    replay.push(&ran.stream);
    let (heap, damage) = replay.finish()?;
    anyhow::ensure!(damage.is_none(), "the stream is damaged: {damage:?}");
    Ok(Run {
        collector: gc.name().to_owned(),
        steps: ran.steps,
        stream_bytes: ran.stream.len() as u64,
        stopped: ran.stopped,
        freed_singly: ran.freed_singly,
        events: heap.answer(top),
    })
}
