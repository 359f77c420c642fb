export PS1='\w \$ '
