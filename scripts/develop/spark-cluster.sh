#!/usr/bin/env bash
# A standalone Spark master with two workers of one core each on this machine, for a try:
#     scripts/develop/spark-cluster.sh start      prints the master's URL
#     scripts/develop/spark-cluster.sh stop
# PYTHON (default .venv/bin/python) has PySpark: pip install 'localsvm[spark]'. Logs and process numbers go to build/spark.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
port=${PORT:-7077}
state=build/spark
url=spark://127.0.0.1:$port

stop() {
    for file in "$state"/*.pid; do
        [ -e "$file" ] || continue
        kill "$(cat "$file")" 2> /dev/null || true
        rm "$file"
    done
}

start() {
    home=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))') \
        || { echo "PySpark is not installed: pip install 'localsvm[spark]'" >&2; exit 1; }
    mkdir -p "$state"
    export SPARK_HOME=$home SPARK_LOCAL_IP=127.0.0.1
    class=org.apache.spark.deploy
    "$home/bin/spark-class" $class.master.Master --host 127.0.0.1 --port "$port" --webui-port 0 > "$state/master.log" 2>&1 &
    echo $! > "$state/master.pid"
    for i in 1 2; do
        "$home/bin/spark-class" $class.worker.Worker --cores 1 --memory 1G --webui-port 0 --work-dir "$PWD/$state/work$i" \
            "$url" > "$state/worker$i.log" 2>&1 &
        echo $! > "$state/worker$i.pid"
    done
    for _ in $(seq 300); do
        if [ "$(grep -c 'Registering worker' "$state/master.log")" = 2 ]; then
            echo "$url"
            return
        fi
        sleep 1
    done
    echo "the cluster did not start in five minutes; see $state/*.log" >&2
    stop
    exit 1
}

case ${1:-} in
    start) start ;;
    stop) stop ;;
    *) echo "usage: scripts/develop/spark-cluster.sh start|stop" >&2; exit 2 ;;
esac
