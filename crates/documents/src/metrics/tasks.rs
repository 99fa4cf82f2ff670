//! Turns of tasks that kept their thread: others waited meanwhile.

use forebay_rt::LongTurns;

use super::text::Text;

/// Writes what is told of the long turns of this process's tasks.
pub fn write(text: &mut Text, turns: &[(&'static str, LongTurns)]) {
    let name = "forebay_task_turns_long_total";
    text.family(
        name,
        "counter",
        "Turns of tasks that used more than 10 ms of their thread's CPU, by the task's name.",
    );
    for (task, turns) in turns {
        text.value(name, &[("task", task)], turns.count);
    }
    let name = "forebay_task_turn_longest_seconds";
    text.family(name, "gauge", "CPU of the longest of these turns since the start, in seconds.");
    for (task, turns) in turns {
        text.value(name, &[("task", task)], turns.longest.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use forebay_rt::{Duration, TURN_CPU_MAX};

    use super::*;

    #[test]
    fn long_turns_are_told_by_the_tasks_name() {
        assert_eq!(TURN_CPU_MAX, Duration::from_millis(10), "as the help says");
        let mut text = Text::default();
        write(&mut text, &[("stream", LongTurns { count: 3, longest: Duration::from_millis(25) })]);
        let text = text.finish();
        for line in [
            "forebay_task_turns_long_total{task=\"stream\"} 3\n",
            "forebay_task_turn_longest_seconds{task=\"stream\"} 0.025\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
