#!/usr/bin/perl
# The R kernel's driver (docs/kernel-protocol.md): the protocol on one side, one R on the other.
#
# R cannot use a socket it was started with, so it gets its commands through a named pipe, and
# everything it has to say comes over its standard output: what it prints, as it prints it, and
# between that the marks of kernel.R with values, plots and errors. One stream keeps one order,
# output of child processes included, and nothing waits for the end of a cell.
#
#     order:  verb <1f> field <1f> field ... <0a>
#     mark:   <1e> nonce <1f> verb <1f> field ... <1e>
#
# Inside a field the bytes 1d 1e 1f 0a 0d are written as 1d and a letter.
use strict;
use warnings;
use Errno qw(EINTR);
use Fcntl qw(F_SETFD F_GETFL F_SETFL FD_CLOEXEC O_NONBLOCK O_WRONLY);
use POSIX qw(:sys_wait_h _exit dup2 mkfifo setsid);
use lib ($0 =~ m{\A(.*)/} ? $1 : '.') . '/../bash';
use Json;

use constant {
    R             => '/usr/bin/R',
    READ_SIZE     => 1 << 16,
    TEXT_LIMIT    => 1 << 16,    # a longer line goes out in pieces
    PARTIAL_AFTER => 0.1,        # seconds until a line without an end is shown
    WARM_AFTER    => 0.15,       # seconds of rest until R loads what makes values rich
    AGAIN_AFTER   => 0.05,       # seconds until an interrupt is repeated: R misses it while it waits for a child
};

my %LETTER = ("\x1d" => 'd', "\x1e" => 'e', "\x1f" => 'f', "\n" => 'n', "\r" => 'r');
my %BYTE   = reverse %LETTER;

my ($protocol, $commands, $stdout, $stderr, $pid, $wake_read, $wake_write);
my $nonce       = nonce();
my $run         = 0;     # id of the cell that runs, or 0
my $is_stopping = 0;     # it was interrupted
my $count       = 0;
my $input       = '';
my $can_warm    = 0;     # R is up and has not loaded its packages for rich values yet
my %text        = (stdout => '', stderr => '');

sub nonce {
    open my $random, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
    sysread $random, my $bytes, 16;
    return unpack 'H*', $bytes;
}

sub write_all {
    my ($to, $bytes) = @_;
    while (length $bytes) {
        my $done = syswrite $to, $bytes;
        if    (defined $done) { substr $bytes, 0, $done, '' }
        elsif ($! != EINTR)   { leave(1) }
    }
}

sub send_message { write_all($protocol, Json::encode($_[0]) . "\n") }

sub send_ready {
    my ($version) = @_;
    $can_warm = 1;
    send_message({ ev => 'ready', pid => \$$, version => $version, interrupt => 'message', coalesce => \'true' });
}

# The reason is empty when R is in the new directory.
sub send_cd {
    my ($reason) = @_;
    my $ok = $reason eq '' ? 'true' : 'false';
    send_message({ ev => 'cd', ok => \$ok, $reason eq '' ? () : (reason => $reason) });
}

sub send_error {
    my ($value, @calls) = @_;
    send_message({ ev => 'error', id => \$run, name => 'ERROR', value => $value, traceback => \@calls });
}

sub command { write_all($commands, join("\x1f", map { escape($_) } @_) . "\n") }

sub escape   { my ($text) = @_; $text =~ s/([\x1d-\x1f\n\r])/\x1d$LETTER{$1}/g; return $text }
sub unescape { my ($text) = @_; $text =~ s/\x1d(.)/$BYTE{$1}/gs; return $text }

sub leave {
    kill 'KILL', -$pid if $pid;
    _exit($_[0]);
}

# ---- what R says --------------------------------------------------------------------------------

sub send_text {
    my ($name, $text) = @_;
    return if $text eq '' || !$run;
    send_message({ ev => 'stream', id => \$run, name => $name, text => $text });
}

# Shows whole lines, as many as there are; with $is_all the rest too, but never half of a character
# that is still on its way.
sub show {
    my ($name, $is_all) = @_;
    my $end = rindex($text{$name}, "\n") + 1;
    if ($is_all || length($text{$name}) - $end > TEXT_LIMIT) {
        $text{$name} =~ /(?:[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})?\z/;
        $end = $-[0];
    }
    send_text($name, substr $text{$name}, 0, $end, '');
}

sub take_stdout {
    my ($bytes) = @_;
    my $start = "\x1e$nonce\x1f";
    $text{pending} = ($text{pending} // '') . $bytes;
    while (length $text{pending}) {
        my $at = index $text{pending}, "\x1e";
        if ($at != 0) {
            $text{stdout} .= substr $text{pending}, 0, $at < 0 ? length $text{pending} : $at, '';
            next;
        }
        my $found = substr $text{pending}, 0, length $start;
        if ($found eq $start) {
            my $end = index $text{pending}, "\x1e", 1;
            last if $end < 0;
            my $mark = substr $text{pending}, 0, $end + 1, '';
            take_mark(map { unescape($_) } split /\x1f/, substr($mark, length $start, -1), -1);
        }
        elsif (index($start, $found) == 0) { last }
        else                               { $text{stdout} .= substr $text{pending}, 0, 1, '' }
    }
    show('stdout', 0);
}

# Everything printed so far comes before the mark.
sub take_mark {
    my ($verb, @fields) = @_;
    drain_stderr();
    show('stdout', 1);
    show('stderr', 1);
    if    ($verb eq 'ready')   { send_ready($fields[0]) }
    elsif ($verb eq 'cd')      { send_cd($fields[0]) }
    elsif ($verb eq 'text')    { send_text(@fields) }
    elsif ($verb eq 'display') { display({@fields}) }
    elsif ($verb eq 'plot')    { plot(@fields) }
    elsif ($verb eq 'error')   { send_error(@fields) }
    elsif ($verb eq 'done')    { finish($fields[0]) }
}

sub display {
    my ($data) = @_;
    for my $mime (keys %$data) {
        my $value = $data->{$mime};
        next if $mime !~ m{[/+]json\z};
        $data->{$mime} = eval { Json::decode($value); \$value } // $value;
    }
    send_message({ ev => 'display', id => \$run, main => \'false', data => $data });
}

# A plot is a file; it is read and removed.
sub plot {
    my ($mime, $file, $title) = @_;
    open my $from, '<:raw', $file or return;
    my $bytes = do { local $/; <$from> };
    unlink $file;
    return if $bytes eq '';
    my $value = $mime eq 'image/svg+xml' ? $bytes : base64($bytes);
    display({ 'text/plain' => $title, $mime => $value });
}

sub base64 {
    my ($bytes) = @_;
    my $tail = (3 - length($bytes) % 3) % 3;
    my $text = join '', map { substr $_, 1 } split /\n/, pack 'u', $bytes;
    $text =~ tr{`\x20-_}{AA-Za-z0-9+/};
    substr $text, -$tail, $tail, '=' x $tail if $tail;
    return $text;
}

sub finish {
    my ($how) = @_;
    my $id = $run;
    $how = 'aborted' if $is_stopping && $how eq 'ok';
    ($run, $is_stopping) = (0, 0);
    send_message({ ev => 'done', id => \$id, status => $how });
}

# ---- what the agent says ------------------------------------------------------------------------

sub take_message {
    my ($message) = @_;
    my $op = $message->{op};
    if    ($op eq 'run') { start_run($message) }
    elsif ($op eq 'interrupt') { interrupt($message->{id}) }
    elsif ($op eq 'cd')  { command('cd', $message->{path}) }
    elsif ($op eq 'env') {
        command('env', settings($message->{set}));
        command('renew') if $message->{renew};
    }
}

sub settings {
    my ($env) = @_;
    my @names = grep { $_ ne '' && !/[=\0]/ && $env->{$_} !~ /\0/ } sort keys %{ $env // {} };
    return map { ($_, $env->{$_}) } @names;
}

sub start_run {
    my ($message) = @_;
    my $code     = $message->{code};
    my $is_blank = $code =~ /\A\s*\z/;
    $run = $message->{id};
    send_message({ ev => 'count', id => \$run, n => \($count + 1) });
    return finish('ok') if $is_blank;
    $count++;
    if ($code =~ /\0/) {
        send_error('Cell has a NUL character');
        return finish('error');
    }
    $is_stopping = 0;
    command('run', $code, settings($message->{env}));
}

# Only the cell it is meant for; a late one must not hit the next.
sub interrupt {
    my ($id) = @_;
    return if !$run || $id != $run;
    $is_stopping = 1;
    kill 'INT', -$pid;
}

# ---- R ------------------------------------------------------------------------------------------

# A pair of pipes for output; R's end is inherited, ours is non-blocking.
sub output_pipe {
    pipe my $read, my $write or die "a pipe for R: $!\n";
    fcntl $read, F_SETFL, fcntl($read, F_GETFL, 0) | O_NONBLOCK;
    return ($read, $write);
}

sub start_r {
    my $folder = "/tmp/.cloche-r-$nonce";
    mkdir $folder, 0700 or die "$folder: $!\n";
    mkfifo("$folder/commands", 0600) or die "$folder/commands: $!\n";
    my ($out_read, $out_write) = output_pipe();
    my ($err_read, $err_write) = output_pipe();
    $pid = fork // die "R: $!\n";
    become_r($folder, $out_write, $err_write) if !$pid;
    ($stdout, $stderr) = ($out_read, $err_read);
    open $commands, '>', "$folder/commands" or die "$folder/commands: $!\n";
    unlink "$folder/commands";
    rmdir $folder;
}

sub folder { return $0 =~ m{\A(.*)/} ? $1 : '.' }

sub become_r {
    my ($folder, $out, $err) = @_;
    setsid();
    open my $null, '<', '/dev/null' or _exit(126);
    dup2(fileno $null, 0);
    dup2(fileno $out,  1);
    dup2(fileno $err,  2);
    $SIG{$_} = 'DEFAULT' for qw(INT PIPE CHLD);
    @ENV{qw(CLOCHE_R_COMMANDS CLOCHE_R_NONCE)} = ("$folder/commands", $nonce);
    my @options = ('--no-echo', '--no-restore', '--no-save', '--no-readline', '--no-init-file');
    exec { +R } 'R', @options, '--file=' . folder() . '/kernel.R' or _exit(127);
}

sub drain_stderr {
    while (sysread $stderr, my $bytes, READ_SIZE) { $text{stderr} .= $bytes }
}

sub read_outputs {
    if (sysread $stdout, my $bytes, READ_SIZE) { take_stdout($bytes) }
    drain_stderr();
    show('stderr', 0);
    %text = (stdout => '', stderr => '', pending => $text{pending}) if !$run;
}

# R has exited: its last output, then the same exit status; the agent does the rest.
sub r_exited {
    my ($wait) = @_;
    read_outputs();
    show($_, 1) for qw(stdout stderr);
    _exit(WIFEXITED($wait) ? WEXITSTATUS($wait) : 128 + WTERMSIG($wait));
}

sub read_protocol {
    my $had = length $input;
    my $got = sysread $protocol, $input, READ_SIZE, $had;
    return if !defined $got && $! == EINTR;
    leave(0) if !$got;
    return if index($input, "\n", $had) < 0;
    while ($input =~ s/\A([^\n]*)\n//) { take_message(Json::decode($1)) if $1 ne '' }
}

sub patience {
    return AGAIN_AFTER   if $is_stopping;
    return PARTIAL_AFTER if $run && (length $text{stdout} || length $text{stderr});
    return WARM_AFTER    if $can_warm && !$run;
    return;
}

sub warm_up {
    $can_warm = 0;
    command('warm');
}

sub loop {
    while (1) {
        my $watched = '';
        vec($watched, fileno $_, 1) = 1 for $protocol, $wake_read, $stdout, $stderr;
        my $found = select $watched, undef, undef, patience();
        sysread $wake_read, my $woken, 64 if $found > 0 && vec $watched, fileno $wake_read, 1;
        interrupt($run) if $is_stopping && $found == 0;
        r_exited($?) if waitpid($pid, WNOHANG) == $pid;
        next if $found < 0;
        if ($found == 0) {
            show($_, 1) for qw(stdout stderr);
            warm_up() if $can_warm && !$run;
        }
        read_outputs();
        read_protocol() if vec $watched, fileno $protocol, 1;
    }
}

open $protocol, '+<&=', 3 or die "the protocol's descriptor: $!\n";
binmode $protocol;
fcntl $protocol, F_SETFD, FD_CLOEXEC;
pipe $wake_read, $wake_write or die "a pipe for signals: $!\n";
$SIG{INT}  = sub { };
$SIG{CHLD} = sub { syswrite $wake_write, 'x' };
$SIG{PIPE} = 'IGNORE';
start_r();
loop();
