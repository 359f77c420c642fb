#!/usr/bin/perl
# The Bash kernel (docs/kernel-protocol.md): a driver that keeps one interactive bash on a
# pseudo-terminal and feeds it cells.
#
# Perl, because it is essential in every Debian system, starts in a few milliseconds and can do what
# bash cannot: watch several descriptors, own a terminal and read more than one byte at a time.
#
# The shell reads its commands from a private pipe. For each cell it gets three lines:
#
#     __cloche_code='<the cell>'
#     source cell.bash </dev/null >/dev/pts/N 2>&1
#     printf '<mark>' $? >/dev/pts/N
#
# A broken cell cannot swallow the last line, `read` finds end of file instead of the protocol,
# and prompts, job notices, traces of our own lines and the like go to the shell's own
# /dev/null. Ctrl-C throws an interactive shell back to its next line: the cell ends, the state
# stays. The mark travels through the terminal behind the cell's output and marks its end.
use strict;
use warnings;
use Errno qw(EINTR);
use Fcntl qw(F_SETFD FD_CLOEXEC);
use POSIX qw(:sys_wait_h _exit);
use lib $0 =~ m{\A(.*)/} ? $1 : '.';
use Json;
use Shell;

use constant {
    LINE_LIMIT    => 1 << 16,    # a longer line goes out in pieces
    READ_SIZE     => 1 << 16,
    PARTIAL_AFTER => 0.3,        # seconds until a line without an end is shown
    AGAIN_AFTER   => 1,          # seconds until an interrupt is sent once more: it may fall between two processes
    REMINDERS     => 5,          # signals to what an interrupted cell left behind, one a second
    STRAGGLE_TRIES => 10,        # looks whether it is gone, before the next cell may begin
    STRAGGLE_STEP => 0.005,      # seconds between them
    KILL_AT       => 3,          # this many interrupts kill what ignores them
    RESTART_AT    => 5,          # and this many the shell itself
};

my %MIME = (html => 'text/html', js => 'application/javascript');
my $protocol;
my $shell;
my $run;                         # the cell that runs: id, count of interrupts, what to put back
my $count       = 0;
my $status      = 0;
my $output      = '';            # bytes of the terminal not shown yet
my @stragglers;                  # what an interrupted cell may have left behind
my ($reminders, $remind_at) = (0, 0);
my %global;                      # variables of the sandbox, for a fresh shell
my ($wake_read, $wake_write);    # a signal that falls between two looks still wakes the loop

sub send_message {
    my ($message) = @_;
    my $bytes = Json::encode($message) . "\n";
    while (length $bytes) {
        my $done = syswrite $protocol, $bytes;
        if    (defined $done)       { substr $bytes, 0, $done, '' }
        elsif ($! != EINTR)         { $shell->kill_all; _exit(1) }
    }
}

sub send_text {
    my ($text) = @_;
    return if $text eq '' || !$run;
    send_message({ ev => 'stream', id => \$run->{id}, name => 'stdout', text => $text });
}

# ---- output -------------------------------------------------------------------------------------

# Shows whole lines; \r\n counts as \n, and a lone \r ends a piece too.
sub show_lines {
    while ($output =~ s/\A([^\r\n\x1e]*)(\r?\n|\r(?=[^\n]))//) {
        send_text($2 eq "\r" ? "$1\r" : "$1\n");
    }
    show_partial() if length $output > LINE_LIMIT && index($output, "\x1e") < 0;
}

# Shows what has no line end yet, but never half of a character.
sub show_partial {
    my ($text) = $output =~ /\A([^\x1e]*)/;
    $text =~ s/(?:[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\z//;
    substr $output, 0, length $text, '';
    send_text($text);
}

sub show_rest {
    show_lines();
    send_text($output);
    $output = '';
}

# Takes the marks out of the stream: the end of the cell, and rich output.
sub take_output {
    my $start = "\x1e$shell->{nonce} ";
    while (1) {
        show_lines();
        my $at = index $output, "\x1e";
        return if $at < 0;
        my $found = substr $output, $at, length $start;
        if ($found eq $start) {
            my $end = index $output, "\x1e", $at + 1;
            return if $end < 0;
            my $mark = substr $output, $at + length $start, $end - $at - length $start;
            my $rest = substr $output, $end + 1;
            $output = substr $output, 0, $at;
            my $is_cut = $run && $run->{interrupts};
            my $is_end = take_mark(split / /, $mark, 2);
            $output .= $rest if !$is_end || !$is_cut;    # what a straggler said is not the next cell's
            return if $is_end;
        }
        elsif (index($start, $found) == 0) { return }
        else                               { send_text(substr $output, 0, $at + 1, '') }
    }
}

# True when the cell is over. Marks of earlier cells count for nothing.
sub take_mark {
    my ($kind, $value) = @_;
    if ($kind eq 'begin' || $kind eq 'end') {
        my ($serial, $code) = split / /, $value;
        return 0 if !$run || $serial != $shell->{serial};
        return begin() if $kind eq 'begin';
        show_rest();
        finish($code);
        return 1;
    }
    show_rest();
    show_rich($kind, $value) if $run;
    return 0;
}

sub show_rich {
    my ($kind, $value) = @_;
    my $mime = $MIME{$kind} // image_type($value) // return;
    my $is_text = $mime !~ m{\Aimage/(?!svg)};
    my $data = $is_text ? Json::from_base64($value) : $value;
    send_message({ ev => 'display', id => \$run->{id}, main => \'false', data => { $mime => $data } });
}

sub image_type {
    my $head = Json::from_base64(substr $_[0], 0, 16);
    return 'image/png'     if $head =~ /\A\x89PNG/;
    return 'image/jpeg'    if $head =~ /\A\xff\xd8/;
    return 'image/gif'     if $head =~ /\AGIF8/;
    return 'image/svg+xml' if $head =~ /\A\s*</;
    return;
}

# ---- cells --------------------------------------------------------------------------------------

sub start_run {
    my ($message) = @_;
    my $code     = $message->{code};
    my $is_blank = $code =~ /\A\s*\z/;
    $run = { id => $message->{id}, interrupts => 0, has_begun => 0, env => $message->{env} // {},
             has_exit => scalar($code =~ /\b(?:exit|logout)\b/) };
    send_message({ ev => 'count', id => \$run->{id}, n => \($count + 1) });
    return finish(0) if $is_blank;
    $count++;
    return refuse('Cell has trailing backslash') if $code =~ /(?<!\\)(?:\\\\)*\\\s*\z/;
    return refuse('Cell has a NUL character')    if $code =~ /\0/;
    $output = '';
    $shell->set_env(0, $run->{env});
    $shell->run($code, $status);
}

sub refuse {
    my ($reason) = @_;
    send_error($reason);
    finish(1, 1);
}

sub send_error {
    my ($value) = @_;
    send_message({ ev => 'error', id => \$run->{id}, name => '', value => $value, traceback => '' });
}

# A child started in the very moment of an interrupt can miss it, and the shell goes on without it. It is reminded
# until it is gone. Background jobs do not mind: without job control they ignore interrupts.
sub remind_stragglers {
    @stragglers = $reminders-- > 0 ? grep { kill 'INT', $_ } @stragglers : ();
    $remind_at = time + 1;
}

# What it still says belongs to a cell that is over.
sub await_stragglers {
    for (1 .. STRAGGLE_TRIES) {
        last if !@stragglers;
        select undef, undef, undef, STRAGGLE_STEP;
        my %left = map { $_ => 1 } $shell->others;
        @stragglers = grep { $left{$_} } @stragglers;
    }
    read_terminal();
    $output = '';
}

sub finish {
    my ($code, $is_told) = @_;
    my $id   = $run->{id};
    my $how  = $run->{interrupts} ? 'aborted' : $code ? 'error' : 'ok';
    send_error("$code") if $how eq 'error' && !$is_told;
    @stragglers = $shell->others if $run->{interrupts};
    $reminders = REMINDERS;
    remind_stragglers();
    await_stragglers() if $run->{interrupts};
    $shell->restore_env($run->{env});
    undef $run;
    $status = $code;
    send_message({ ev => 'done', id => \$id, status => $how });
}

# The shell has exited: the cell said exit, or something killed it.
sub shell_exited {
    my ($wait) = @_;
    read_terminal();
    take_output();
    $output =~ s/(\A|[\r\n])exit\r?\n\z/$1/ if $run && $run->{has_exit};
    show_rest();
    my $code = WIFEXITED($wait) ? WEXITSTATUS($wait) : 128 + WTERMSIG($wait);
    send_text('Restarting Bash');
    $shell->close;
    start_shell();
    $run->{env} = {} if $run;
    finish($code) if $run;
    $status = 0;
}

sub start_shell {
    $shell  = Shell->new;
    $output = '';
    $shell->set_env(1, \%global);
}

# The cell runs now; an interrupt that came before has waited for this, because one that hits the lines
# around a cell would make the shell skip them.
sub begin {
    $run->{has_begun} = 1;
    stop_cell() if $run->{interrupts};
    return 0;
}

# Only the cell it is meant for; a late one must not hit the next.
sub interrupt {
    my ($id) = @_;
    return if !$run || $id != $run->{id};
    $run->{interrupts}++;
    stop_cell() if $run->{has_begun} || $run->{interrupts} >= RESTART_AT;
}

sub stop_cell {
    my $times = $run->{interrupts};
    if    ($times >= RESTART_AT) { $shell->kill_all }
    elsif ($times >= KILL_AT)    { kill 'KILL', $shell->others; $shell->interrupt }
    else                         { $shell->interrupt }
    $shell->report;
    $run->{again} = time + AGAIN_AFTER if $times < KILL_AT;
}

sub stop_again {
    $run->{again} = 0;
    $shell->interrupt;
    $shell->report;
}

sub patience {
    return 1 if @stragglers;
    return if !$run;
    return AGAIN_AFTER   if $run->{again};
    return PARTIAL_AFTER if length $output;
    return;
}

sub change_directory {
    my ($path) = @_;
    return send_message({ ev => 'cd', ok => \'false', reason => "$!" }) if !chdir $path;
    $shell->change_directory($path);
    send_message({ ev => 'cd', ok => \'true' });
}

sub take_message {
    my ($message) = @_;
    my $op = $message->{op};
    if    ($op eq 'run') { start_run($message) }
    elsif ($op eq 'interrupt') { interrupt($message->{id}) }
    elsif ($op eq 'cd')  { change_directory($message->{path}) }
    elsif ($op eq 'env') {
        %global = (%global, %{ $message->{set} // {} });
        $shell->set_env(1, $message->{set} // {});
        $shell->renew if $message->{renew};
    }
}

# ---- the loop -----------------------------------------------------------------------------------

my $input = '';

sub read_protocol {
    my $had = length $input;
    my $got = sysread $protocol, $input, READ_SIZE, $had;
    return if !defined $got && $! == EINTR;
    if (!$got) { $shell->kill_all; _exit(0) }
    return if index($input, "\n", $had) < 0;
    while ($input =~ s/\A([^\n]*)\n//) { take_message(Json::decode($1)) if $1 ne '' }
}

sub read_terminal {
    while (1) {
        my $got = sysread $shell->{terminal}, $output, READ_SIZE, length $output;
        last if !$got;
        last if length $output > LINE_LIMIT;
    }
}

sub loop {
    while (1) {
        my $watched = '';
        vec($watched, fileno $_, 1) = 1 for $protocol, $wake_read, $shell->{terminal};
        my $found = select $watched, undef, undef, patience();
        sysread $wake_read, my $woken, 64 if $found > 0 && vec $watched, fileno $wake_read, 1;
        my $gone = waitpid $shell->{pid}, WNOHANG;
        if ($gone == $shell->{pid}) { shell_exited($?); next }
        stop_again() if $run && $run->{again} && time >= $run->{again};
        remind_stragglers() if @stragglers && time >= $remind_at;
        if ($found == 0) { show_partial(); next }
        next if $found < 0;
        if (vec $watched, fileno $shell->{terminal}, 1) {
            read_terminal();
            if   ($run) { take_output() }
            else        { $output = '' }
        }
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
start_shell();
send_message({ ev => 'ready', pid => \$$, version => $shell->{version}, interrupt => 'message' });
loop();
