#!/bin/sh
# Several hosts in one machine, each a network namespace with a name, and an sshd on port 22. This
# shell's namespace is the machine where commands are typed: 10.98.0.254, on a bridge with the hosts
# node0, node1, ... at 10.98.0.1, 10.98.0.2, ... Keys and configurations are created for the test.
# Run it as root with `unshare --net`. Everything ends with this shell, however that ends.
#
# usage: ssh_hosts.sh COUNT DIRECTORY VARIABLE=VALUE
# VARIABLE is in the environment of everything that sshd starts. DIRECTORY then has
#   bin/ssh        ssh with a configuration for the hosts; also on every host
#   node0.pid      a process whose network namespace is the host's
#   node0.sshd     the host's sshd
#   node0.home     the host's home directory, without the real one's login scripts
# Prints "ready" when ssh can connect to all of them.
set -eu
count=$1
directory=$2
variable=$3

mkdir -p /run/sshd "$directory/bin"
ssh-keygen -q -t ed25519 -N '' -f "$directory/user_key"
ssh-keygen -q -t ed25519 -N '' -f "$directory/host_key"
cp "$directory/user_key.pub" "$directory/authorized_keys"
cat >"$directory/ssh_config" <<END
Host node*
  User $(id -un)
  IdentityFile $directory/user_key
  IdentitiesOnly yes
  UserKnownHostsFile $directory/known_hosts
  GlobalKnownHostsFile /dev/null
END
cat >"$directory/bin/ssh" <<END
#!/bin/sh
exec /usr/bin/ssh -F $directory/ssh_config "\$@"
END
chmod +x "$directory/bin/ssh"

ip link set lo up
ip link add hosts type bridge
ip addr add 10.98.0.254/24 dev hosts
ip link set hosts up

started=
trap 'kill $started 2>/dev/null || true' EXIT
i=0
while [ $i -lt "$count" ]; do
  address=10.98.0.$((i + 1))
  mkdir "$directory/node$i.home"
  cat >"$directory/node$i.config" <<END
ListenAddress $address
HostKey $directory/host_key
AuthorizedKeysFile $directory/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100:30:200
SetEnv $variable HOME=$directory/node$i.home PATH=$directory/bin:/usr/local/bin:/usr/bin:/bin TMPDIR=$directory MUSTER_RUNS_DIR=$directory/runs
END
  setpriv --pdeathsig KILL unshare --net --uts sleep infinity &
  host=$!
  started="$started $host"
  while [ "$(readlink /proc/$host/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  ip link add "to$i" type veth peer name eth0 netns $host
  ip link set "to$i" master hosts up
  nsenter --target $host --net ip link set lo up
  nsenter --target $host --net ip addr add $address/24 dev eth0
  nsenter --target $host --net ip link set eth0 up
  nsenter --target $host --uts hostname "node$i"
  echo "$host" >"$directory/node$i.pid"
  setpriv --pdeathsig KILL nsenter --target $host --net --uts \
    /usr/sbin/sshd -D -e -f "$directory/node$i.config" 2>"$directory/node$i.log" &
  echo $! >"$directory/node$i.sshd"
  started="$started $!"
  printf 'Host node%s\n  HostName %s\n' "$i" "$address" >>"$directory/ssh_config"
  printf 'node%s,%s %s\n' "$i" "$address" "$(cut -d' ' -f1,2 "$directory/host_key.pub")" >>"$directory/known_hosts"
  i=$((i + 1))
done
i=0
while [ $i -lt "$count" ]; do
  until grep -q 'Server listening' "$directory/node$i.log"; do sleep 0.02; done
  i=$((i + 1))
done
echo ready
exec sleep infinity
