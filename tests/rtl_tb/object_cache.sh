#!/bin/sh
# object_cache.sh POOL COMPILER ARGUMENT...
# Stands before the compiler in Verilator's makefile (OBJCACHE): compiles the harness and
# Verilator's runtime once for each set of options, also for commands that tests start, whose own copies of it OBJCACHE turns off.
# It takes the object from POOL from then on. All else is compiled as without it.
pool=$1
shift
source= object= before= own=
for word; do
    case $word in *.cpp) source=$word ;; esac
    test "$before" = -o && object=$word
    before=$word
done
case $source in
*/fast_harness.cpp) own="mmagold_rules.h ${source%/*}/fast_model.h" ;; # what it includes of ours
*/include/verilated*.cpp) ;;
*) exec "$@" ;;
esac
name=$({ echo "$@" && cat "$source" $own; } | sha256sum) && name=$pool/${name%% *} || exit
cp "$name" "$object" 2>/dev/null && exit
"$@" || exit
cp "$object" "$name.$$" 2>/dev/null && mv "$name.$$" "$name" # in one step: another process may read it
exit 0
