/* The life of one message in its parcel, for spin: every order of its clients' calls of the store.

       sender      puts the parcel if its key is free; repeats it if the answer was lost
       receivers   read; claim if it is as it was read; give back, delete, or both by one receipt
       mover       reads; moves it to the dead-letter queue, in one transaction
       purger      sets the floor; then removes what is below it
       clock       ends leases

   The steps `claimed`, `given_back`, `deleted` and `moved` are those of the table in
   cirrusmq/model/steps.py, which judges the writes of the code; a test compares the names. So the
   table keeps code and model together: nothing makes this text from the code.

   Left out: more messages in a parcel, partitions, groups and their order, rewinds, slots, URLs,
   caches, old reads, and time but for "the lease is over" and "sent before the floor". A message
   that was deleted may come again by a send that is repeated: delivery is at least once.

   -DRECEIVERS=2 -DROUNDS=1 -DMOVER -DPURGER; planted faults: -DNO_COMPARE -DNO_NONCE -DKEPT_NONCE
   -DNO_TOMBSTONE -DMOVE_FIRST -DNO_FLOOR */

#ifndef RECEIVERS
#define RECEIVERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define QUEUE 0
#define DEAD 1

mtype = { none, free, held, gone }      /* gone: empty, but the key stays taken */

mtype state[2]                          /* in the queue, and in the dead-letter queue */
byte nonce[2]                           /* of the receipt; 0: there is none */
bool over[2]                            /* the lease is over */
bool below[2]                           /* sent before the floor */
bool floor                              /* the purge is answered */
byte nonces                             /* how many were drawn */
byte holder[2]                          /* a ghost: the lease that nobody has ended or taken over */
bool acknowledged, consumed, purged     /* ghosts: of the message, whatever its parcel */

#define hidden(q) (floor && below[q])
#define live(q) ((state[q] == free || state[q] == held) && !hidden(q))
#define receivable(q) (state[q] == free || (state[q] == held && over[q]))
inline put(q, early) {
    state[q] = free; nonce[q] = 0; over[q] = false; below[q] = early; holder[q] = 0
}
inline claimed(q, seen, knows_floor, mine) {
    atomic {
        mine = 0;
        if
#ifdef NO_COMPARE
        :: state[q] == free || state[q] == held ->
#else
        :: receivable(q) && nonce[q] == seen ->
#endif
            assert(holder[q] == 0 || over[q]);              /* held by one at a time */
            assert(!(knows_floor && below[q]));             /* a purged message is not received */
            assert(hidden(q) || !live(1 - q));              /* there is one of it */
            nonces++; mine = nonces;
            state[q] = held; nonce[q] = mine; over[q] = false; holder[q] = mine
        :: else
        fi
    }
}
inline given_back(q, mine) {
    atomic {
        if
#ifdef NO_NONCE
        :: state[q] == held ->
#else
        :: state[q] == held && nonce[q] == mine ->
#endif
            assert(holder[q] == mine);                      /* a stale receipt changes nothing */
            state[q] = free; holder[q] = 0;
#ifndef KEPT_NONCE
            nonce[q] = 0
#endif
        :: else
        fi
    }
}
inline deleted(q, mine) {
    atomic {
        if
#ifdef NO_NONCE
        :: state[q] == held || state[q] == free ->
#else
        :: (state[q] == held || state[q] == free) && nonce[q] == mine ->
#endif
            assert(holder[q] == mine);                      /* a stale receipt changes nothing */
            state[q] = none; nonce[q] = 0; over[q] = false; holder[q] = 0; consumed = true
        :: else
        fi
    }
}
inline moved(seen) {
#ifdef MOVE_FIRST
    put(DEAD, false);
#endif
    atomic {
        if
        :: receivable(QUEUE) && nonce[QUEUE] == seen && !hidden(QUEUE) ->
#ifdef NO_TOMBSTONE
            state[QUEUE] = none;
#else
            state[QUEUE] = gone;
#endif
            nonce[QUEUE] = 0; over[QUEUE] = false; holder[QUEUE] = 0;
#ifndef MOVE_FIRST
            put(DEAD, false)
#endif
        :: else
        fi
    }
}
proctype Sender() {
    bool early
    early = !floor;                     /* the attempt's time, which its repetition keeps */
    do
    :: atomic {
        if :: state[QUEUE] == none -> put(QUEUE, early) :: else fi;
        if
        :: acknowledged = true; break   /* answered */
        :: skip                         /* the answer is lost: the send is repeated */
        fi
    }
    od
}
proctype Receiver() {
    byte seen, mine, round, q
    bool may, knows_floor
    for (round : 1 .. ROUNDS) {
#ifdef MOVER
        if :: q = QUEUE :: q = DEAD fi;
#endif
        atomic {
            seen = nonce[q]; knows_floor = floor && q == QUEUE;
#ifdef NO_FLOOR
            may = receivable(q)
#else
            may = receivable(q) && !hidden(q)
#endif
        }
        if
        :: may -> claimed(q, seen, knows_floor, mine)
        :: else -> mine = 0
        fi;
        if
        :: mine != 0 ->
            if
            :: true -> deleted(q, mine);
                if :: true -> deleted(q, mine) :: skip fi   /* repeated: the answer was lost */
            :: true -> given_back(q, mine);
                if :: true -> deleted(q, mine) :: skip fi   /* a second act by its receipt */
            :: skip                     /* it crashes, or the claim's answer is lost */
            fi
        :: else
        fi;
        seen = 0; mine = 0; may = false; knows_floor = false
    }
}
proctype Clock() {
    do
    :: atomic { state[QUEUE] == held && !over[QUEUE] -> over[QUEUE] = true }
    :: atomic { state[DEAD] == held && !over[DEAD] -> over[DEAD] = true }
    od
}
proctype Mover() {
    byte seen
    bool may
    atomic { seen = nonce[QUEUE]; may = receivable(QUEUE) && !hidden(QUEUE) }
    if :: may -> moved(seen) :: else fi
}
proctype Purger() {
    atomic { floor = true; purged = true }
    atomic {
        if
        :: below[QUEUE] && state[QUEUE] != none ->
            state[QUEUE] = none; nonce[QUEUE] = 0; over[QUEUE] = false; holder[QUEUE] = 0
        :: else
        fi
    }
}
init {
    byte n
    atomic {
        state[QUEUE] = none; state[DEAD] = none;
        run Sender(); run Clock();
#ifdef MOVER
        run Mover();
#endif
#ifdef PURGER
        run Purger();
#endif
        for (n : 1 .. RECEIVERS) { run Receiver() }
    }
    timeout;                            /* nobody has anything left to do */
    assert(!acknowledged || consumed || purged || live(QUEUE) || live(DEAD))  /* nothing is lost */
}
