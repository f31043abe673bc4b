//! `transfers` under the seeded simulator: crashes, restores at another parallelism and under another protocol, writes that
//! fail. All the money is in every checkpoint, in accounts and on its way; and in the end each account has what is its own.
//!
//! The seed is the bug report: `SNAPRING_SEED=17 cargo test -p snapring-jobs --test money`. More of them:
//! `SNAPRING_SEEDS=10000 cargo test -p snapring-jobs --test money`.

use snapring::dataflow::Dataflow;
use snapring::testing::{Fault, Seen, World, simulate};
use snapring_jobs::{Balance, Transfers, balances};

const SEEDS: u64 = 300;

fn job(world: &World) -> Transfers {
    let mut random = world.random();
    let (accounts, amount) = (random.between(1, 30), random.between(0, 1000) as i64);
    Transfers { accounts, amount, seed: random.next(), transfers: Some(random.between(0, 600)) }
}

fn draw(world: &mut World) -> Dataflow {
    let job = job(world);
    let flow = Dataflow::new("transfers");
    balances(job, &flow).sink("balances", world.sink("balances"));
    world.at_checkpoint(move |reader, epoch| {
        let audit = job.audit(reader, epoch).expect("it is durable");
        assert_eq!(audit.money.total(), job.total(), "epoch {epoch}, {}: {:?}", audit.protocol, audit.money);
    });
    flow
}

fn check(world: &World) {
    let job = job(world);
    let balances = world.committed::<Balance>("balances");
    let mut accounts: Vec<u64> = balances.iter().map(|balance| balance.account).collect();
    accounts.sort_unstable();
    assert_eq!(accounts, (0..job.accounts).collect::<Vec<_>>(), "each account once");
    let all: i128 = balances.iter().map(|balance| i128::from(balance.balance)).sum();
    assert_eq!(all, job.total());
    assert!(balances.iter().all(|balance| balance.balance >= 0), "an account has sent what it had not");
}

#[test]
fn all_the_money_is_in_every_checkpoint() -> Result<(), Fault> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    if let Some(seed) = number("SNAPRING_SEED") {
        return simulate([seed], draw, check).map(drop);
    }
    let seeds = number("SNAPRING_SEEDS").unwrap_or(SEEDS);
    let seen: Seen = simulate(0..seeds, draw, check)?;
    println!("{seen:?}");
    assert!(seen.audited > 10 * seeds && seen.crashes > seeds && seen.restores > seeds / 2, "{seen:?}");
    Ok(())
}
