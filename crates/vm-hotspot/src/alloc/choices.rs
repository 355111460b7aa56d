//! Which objects are recorded, and how: the class filters, looked up once per class.
//!
//! They may change at any time. Entries that threads added to their tables before have other keys, so threads add them
//! again ([`crate::vm::state::State::choose`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti::{Jni, Object};
use rustc_hash::{FxHashMap, FxHashSet};
use vmpi::class_options::Rules;
use vmpi::info::java_name;
use vmpi::{Choice, ClassAnswer, ClassId, ClassOptions, Random, Share};

use crate::live::own_code::Asking;
use crate::vm::places::module;
use crate::vm::registry::Registry;

/// Random numbers that choose objects.
#[derive(Debug)]
pub(crate) struct Dice(Random);

impl Default for Dice {
    /// A new seed each time, so that threads that do the same do not choose the same objects.
    fn default() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(1);
        Self(Random::new(MADE.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Dice {
    /// Whether the next object is among those that are recorded.
    pub(crate) fn choose(&mut self, share: Share) -> bool {
        if share == Share::ALL {
            return true;
        }
        share.chooses((self.0.bits() >> 32) as u32)
    }

    /// Whether the next object is tracked, one of `1 << halves` on average.
    pub(crate) fn choose_in_halves(&mut self, halves: u32) -> bool {
        halves == 0 || self.0.bits().leading_zeros() >= halves
    }
}

/// How objects of a class are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Its objects are not recorded.
    Off,
    /// They are recorded with these options.
    Record(ClassOptions),
}

const FULL: Chosen = Chosen::Record(ClassOptions::FULL);

/// A question to a factory of the program about a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) factory: String,
    pub(crate) class: ClassId,
    pub(crate) module: String,
    pub(crate) name: String,
}

/// Questions to factories of the program, and their answers.
#[derive(Debug, Default)]
struct Factories {
    /// By class and factory.
    answers: FxHashMap<ClassId, FxHashMap<String, Chosen>>,
    /// New questions.
    questions: Vec<Question>,
    /// Factories that are not called again, because they do not answer.
    mute: FxHashSet<String>,
    /// Factories of which a fault was reported.
    faulty: FxHashSet<String>,
    /// Valid answers that are not reported yet; and whether the answers reported before are no longer valid.
    news: Vec<(ClassId, Chosen)>,
    is_anew: bool,
    /// Whether a thread calls the factories.
    is_asking: bool,
    /// The question that this thread waits for.
    asking: Arc<Asking>,
}

/// The present options.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    rules: Arc<Rules>,
    /// How often they have changed.
    epoch: u32,
    known: FxHashMap<ClassId, Chosen>,
    factories: Factories,
    pub(crate) dice: Dice,
}

impl Choices {
    /// Sets the rules; false if they are the same as before.
    pub(crate) fn set(&mut self, rules: &Arc<Rules>) -> bool {
        if self.rules == *rules {
            return false;
        }
        self.rules = Arc::clone(rules);
        self.factories.news.clear();
        self.factories.is_anew = true;
        self.renew();
        true
    }

    /// Discards what is known of classes.
    fn renew(&mut self) {
        self.known.clear();
        self.epoch += 1;
    }

    /// Makes threads add the entries of their tables again, with unchanged options.
    pub(crate) fn begin_epoch(&mut self) {
        self.epoch += 1;
    }

    /// How often the options have changed.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// How objects of a class with this mirror are recorded. Runs no Java code.
    pub(crate) fn of(
        &mut self,
        registry: &Registry,
        jni: Jni,
        (class, mirror): (ClassId, Object),
    ) -> Chosen {
        if self.rules.is_empty() {
            return FULL;
        }
        if let Some(known) = self.known.get(&class) {
            return *known;
        }
        let entry = registry.classes.get(class.0);
        let Some(entry) = entry else { return FULL };
        let name = java_name(&entry.info.signature);
        let chosen = match self.rules.of(&module(jni, mirror), &name) {
            Choice::Off => Chosen::Off,
            Choice::Record(options) => Chosen::Record(*options),
            Choice::Ask(factory) => {
                let answers = self.factories.answers.get(&class);
                match answers.and_then(|answers| answers.get(factory)) {
                    Some(answer) => {
                        self.factories.news.push((class, *answer));
                        *answer
                    }
                    None if self.factories.mute.contains(factory) => FULL,
                    // The default, until it has answered.
                    None => {
                        let question = Question {
                            factory: factory.clone(),
                            class,
                            module: module(jni, mirror),
                            name,
                        };
                        self.factories.questions.push(question);
                        FULL
                    }
                }
            }
        };
        self.known.insert(class, chosen);
        chosen
    }

    /// Drops what is known of a class that was unloaded.
    pub(crate) fn forget(&mut self, class: ClassId) {
        self.known.remove(&class);
        let factories = &mut self.factories;
        factories.answers.remove(&class);
        factories
            .questions
            .retain(|question| question.class != class);
        factories.news.retain(|(of, _)| *of != class);
    }

    /// Whether a thread that calls factories must be started.
    pub(crate) fn begin_asking(&mut self) -> bool {
        let begins = self.rules.asks() && !self.factories.is_asking;
        self.factories.is_asking |= begins;
        begins
    }

    /// Whether class filters name a factory.
    pub(crate) fn asks(&self) -> bool {
        self.rules.asks()
    }

    /// Records that no thread calls factories any longer.
    pub(crate) fn end_asking(&mut self) {
        self.factories.is_asking = false;
    }

    /// The new questions; `None` if no factory is named any longer: the thread that asks then ends.
    pub(crate) fn take_questions(&mut self) -> Option<Vec<Question>> {
        if !self.rules.asks() {
            self.factories.is_asking = false;
            return None;
        }
        Some(std::mem::take(&mut self.factories.questions))
    }

    /// The question that the agent waits for.
    pub(crate) fn asking(&self) -> Arc<Asking> {
        Arc::clone(&self.factories.asking)
    }

    /// Never calls a factory again.
    pub(crate) fn never_ask(&mut self, factory: &str) {
        self.factories.mute.insert(factory.to_owned());
        let others = |question: &Question| question.factory != factory;
        self.factories.questions.retain(others);
    }

    /// What factories have answered for classes since the last call, and whether the answers reported
    /// before are no longer valid.
    pub(crate) fn take_news(&mut self) -> (bool, Vec<ClassAnswer>) {
        let news = std::mem::take(&mut self.factories.news).into_iter();
        let answers = news.map(|(class, chosen)| ClassAnswer {
            class,
            options: match chosen {
                Chosen::Off => None,
                Chosen::Record(options) => Some(options),
            },
        });
        let is_anew = std::mem::take(&mut self.factories.is_anew);
        (is_anew, answers.collect())
    }

    /// Whether a fault of a factory is its first.
    pub(crate) fn is_first_fault(&mut self, factory: &str) -> bool {
        self.factories.faulty.insert(factory.to_owned())
    }

    /// Stores answers; returns whether one differs from the default.
    pub(crate) fn take_answers(&mut self, answers: Vec<(Question, Chosen)>) -> bool {
        let is_news = answers.iter().any(|(_, answer)| *answer != FULL);
        let reported = answers
            .iter()
            .map(|(question, answer)| (question.class, *answer));
        self.factories.news.extend(reported);
        for (question, answer) in answers {
            let known = self.factories.answers.entry(question.class);
            known.or_default().insert(question.factory, answer);
        }
        if is_news {
            self.renew();
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_choose_the_share_that_is_asked_for() {
        for ratio in [0.5, 0.1, 0.01] {
            let share = Share::new(ratio).unwrap();
            let mut dice = Dice::default();
            let draws = 400_000;
            let chosen = (0..draws).filter(|_| dice.choose(share)).count() as f64;
            let (mean, spread) = (
                f64::from(draws) * ratio,
                (f64::from(draws) * ratio * (1.0 - ratio)).sqrt(),
            );
            // Five standard deviations.
            assert!((chosen - mean).abs() < 5.0 * spread, "{ratio}: {chosen}");
        }
        let mut dice = Dice::default();
        assert!((0..1000).all(|_| dice.choose(Share::ALL)));
    }
}
