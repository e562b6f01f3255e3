"""Training in parts: tables larger than memory, or shared by several machines.

Both tables are divided into the same P random parts. An episode is a range of walks; each of its P
sub-episodes trains P blocks (center part i, context part j), no two of which share a part, so they can run
anywhere and in any order: the result is the same to the bit.

`schedule` says which blocks follow each other, `pairs` finds the pairs of a block, `loop` and `block` train
one, `backend` runs them all through an executor: `memory` (threads), `disk` (files) or `cluster` (Ray).
`plan` chooses the number of parts.
"""
