import sys
from tests.simulation.simulation import play
bases=[8380000,8390000,8400000,8460000,8520000,8580000,8590000,8620000,8630000]
n=int(sys.argv[1]); off=int(sys.argv[2])
bad=0
for b in bases:
    for i in range(n):
        v=play(b+off+i).violation
        if v: bad+=1; print(b+off+i, str(v)[:300], flush=True)
print("played", n*len(bases), "bad", bad)
