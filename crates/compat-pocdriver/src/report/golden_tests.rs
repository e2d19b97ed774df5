//! Blocks and lines of real runs of the original.

use crate::report::*;

/// The two reports of a run of 24 seconds; shares in hundredths of a per cent.
fn ticks() -> [PocTick; 2] {
    let tick = |seconds, clock: &str, counts, last, slow: [u64; 4]| PocTick {
        seconds,
        clock: (clock.into(), format!("2026-11-21T{clock}")),
        counts,
        last,
        before: 0,
        slow: slow.map(|slow| vec![(slow, 10_000)]),
    };
    let first = [4_017, 5_843, 21_910, 240];
    let second: [u64; 4] = [11_004, 27_667, 58_660, 533];
    let mut since = second;
    since.iter_mut().zip(first).for_each(|(now, before)| *now -= before);
    [
        tick(10, "03:32:05", first, (first, 10_488), [92, 3, 18, 0]),
        tick(20, "03:32:15", second, (since, 10_002), [70, 1, 44, 208]),
    ]
}

#[test]
fn reports() {
    let [first, second] = ticks();
    let expected = "\
------------------------
After 10 seconds (03:32:05), 4,017 new documents inserted - collection has 4,017 in total \n\
383 inserts per second since last report \n\t99.08 % in under 50 milliseconds
557 keyqueries per second since last report \n\t99.97 % in under 50 milliseconds
2,089 updates per second since last report \n\t99.82 % in under 50 milliseconds
22 rangequeries per second since last report \n\t100.00 % in under 50 milliseconds

";
    assert_eq!(interval(&first, &[50]), expected);
    let expected = "\
------------------------
After 20 seconds (03:32:15), 11,004 new documents inserted - collection has 11,004 in total \n\
698 inserts per second since last report \n\t99.30 % in under 50 milliseconds
2,181 keyqueries per second since last report \n\t99.99 % in under 50 milliseconds
3,674 updates per second since last report \n\t99.56 % in under 50 milliseconds
29 rangequeries per second since last report \n\t97.92 % in under 50 milliseconds

";
    assert_eq!(interval(&second, &[50]), expected);
    let several = interval(&PocTick { before: 1_000_000, ..first }, &[]);
    assert!(several.contains("collection has 1,004,017 in total") && !several.contains('\t'));
}

#[test]
fn shares_of_nothing_are_whole() {
    let tick = PocTick { slow: [0; 4].map(|_| vec![(0, 0), (1, 3)]), ..PocTick::default() };
    let text = interval(&tick, &[50, 100]);
    let pair = "0 updates per second since last report \n\t100.00 % in under 50 milliseconds\n\
                \t66.67 % in under 100 milliseconds\n";
    assert!(text.contains(pair), "{text}");
}

#[test]
fn the_summary() {
    let tick = PocTick { seconds: 24, counts: [13_976, 39_633, 69_500, 612], ..PocTick::default() };
    let expected = "\
------------------------
After 24 seconds, 13976 new documents inserted - collection has 13976 in total \n\
582 inserts per second on average
1651 keyqueries per second on average
2895 updates per second on average
25 rangequeries per second on average

";
    assert_eq!(summary(&tick), expected);
    let nothing = summary(&PocTick { before: 7, ..PocTick::default() });
    assert!(nothing.contains("collection has 7 in total \n0 inserts per second"), "{nothing}");
}

#[test]
fn the_log_file_of_the_original() {
    let [first, second] = ticks();
    assert_eq!(
        original_csv(&first),
        "10,40172026-11-21T03:32:05,10,4017,99.08,2026-11-21T03:32:05,10,4017,99.97,2026-11-21T03:32:05,10,4017,99.82,\
         2026-11-21T03:32:05,10,4017,100.00,\n"
    );
    assert_eq!(
        original_csv(&second),
        "20,110042026-11-21T03:32:15,20,11004,99.30,2026-11-21T03:32:15,20,11004,99.99,2026-11-21T03:32:15,20,11004,99.56,\
         2026-11-21T03:32:15,20,11004,97.92,\n"
    );
}

#[test]
fn the_log_file_that_can_be_read() {
    let [_, second] = ticks();
    let head = "time,seconds,inserts,inserts_per_s,inserts_under_50ms_pct,keyqueries,keyqueries_per_s,\
                keyqueries_under_50ms_pct,updates,updates_per_s,updates_under_50ms_pct,rangequeries,\
                rangequeries_per_s,rangequeries_under_50ms_pct\n";
    assert_eq!(csv_head(&[50]), head);
    let line =
        "2026-11-21T03:32:15,20,11004,698.6,99.30,27667,2182.0,99.99,58660,3674.3,99.56,533,29.3,97.92\n";
    assert_eq!(csv(&second), line);
    assert_eq!(csv_head(&[50]).matches(',').count(), line.matches(',').count());
}
