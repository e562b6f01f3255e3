"""Training. The state of a run is a dataclass, and a backend is a module of functions that work on it.

    backend = load_backend("cpu")                    # an entry of the registry in `backend`
    backend.check(graph, config, …)                  # raises an error if the run needs too much memory
    prepared = backend.prepare(graph, config)        # graph and noise distribution, as this backend uses them
    state = backend.start(prepared)                  # TrainingState: tables, coefficients, next walk, history
    state = backend.run(prepared, state, until, on_block)    # from any state to any walk; `on_block` may stop
    state = backend.fetch(state)                     # the tables as NumPy arrays

`config` holds the settings, `schedule` divides a run into blocks and records them, `timing` estimates the
time of a run. `cpu` and `gpu` are the backends, and `parts` is one for tables in
parts.
"""
