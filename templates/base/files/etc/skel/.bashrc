# Read by interactive shells, and through .profile by login shells: what is
# exported here reaches every command.

if [[ $- == *i* ]]; then
	PS1='\w \$ '
	HISTCONTROL=ignoreboth
	shopt -s histappend checkwinsize
	alias ls='ls --color=auto'
	alias grep='grep --color=auto'
	alias ll='ls -l'
fi
