"""Training. A run is data, and every backend is a set of functions of it.

    backend = load_backend("cpu")                    # an entry of the registry in `backend`
    backend.check(graph, config, …)                  # raise now what the run would raise
    prepared = backend.prepare(graph, config)        # walks and negatives, as this backend draws them
    state = backend.start(prepared)                  # TrainingState: tables, coefficients, next walk, history
    state = backend.run(prepared, state, until, on_block)    # from any state to any walk; `on_block` may stop
    state = backend.fetch(state)                     # the tables as NumPy arrays

`config` says what is trained, `course` cuts a run into blocks of walks and keeps its record, `pilot` is a run
of a few walks that chooses what was left open, `resources` predicts time. `cpu` and `gpu` are the backends.
"""
